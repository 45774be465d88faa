# cython: language_level=3


cdef class Source:
    cdef const unsigned char* data
    cdef readonly size_t nbytes
    cdef readonly str name
    cdef readonly long long mtime_ns
    cdef readonly unsigned long long inode
    cdef unsigned long long filesystem
    cdef str path  # absolute; None for a buffer
    cdef int fd  # open as long as the mapping; -1 for a buffer
    cdef size_t ahead_step  # what the system reads ahead at most when it is asked once
    cdef bint tells_residence  # whether `resident` can be believed
    cdef bint mapped
    cdef bint closed
    cdef int exports
    cdef object owner
    cdef Py_buffer held
    cdef int _check_open(self) except -1
    cdef void unmap(self) noexcept
