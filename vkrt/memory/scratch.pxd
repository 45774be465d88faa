# cython: language_level=3

from libc.stdint cimport uint64_t

cdef enum:
    SCRATCHES = 16

cdef struct Scratch:
    uint64_t busy
    char* data
    size_t nbytes


cdef class ScratchPool:
    cdef Scratch scratches[SCRATCHES]
    cdef uint64_t held
    cdef uint64_t peak
    cdef char* acquire(self, size_t nbytes, int* slot) noexcept nogil
    cdef void release(self, char* data, size_t nbytes, int slot) noexcept nogil
    cdef void drop(self, Scratch* scratch) noexcept nogil
    cdef void free_idle(self) noexcept nogil
