# cython: language_level=3


cdef int check_interruption() except -1
