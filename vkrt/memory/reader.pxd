# cython: language_level=3

from vkrt.memory.packing cimport Packing
from vkrt.memory.pieces cimport Job, PieceReader


cdef class Transfer:
    cdef Job job
    cdef readonly Packing packing
    cdef readonly str name


cdef class Reader(PieceReader):
    cdef readonly str strategy
    cdef readonly int threads
    cdef bint may_choose  # how many threads
    cdef bint closed

    cdef int read(self, Transfer transfer) except -1 nogil
    cdef int _check_open(self) except -1
