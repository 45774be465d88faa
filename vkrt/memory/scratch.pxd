# cython: language_level=3

from libc.stdint cimport uint64_t

from vkrt.memory.host_arena cimport HostArena

cdef enum:
    SCRATCHES = 16

cdef struct Scratch:
    uint64_t busy
    char* data
    size_t nbytes


cdef class ScratchPool:
    cdef Scratch scratches[SCRATCHES]
    cdef uint64_t held
    cdef uint64_t most
    cdef HostArena arena
    cdef dict blocks  # by address
    cdef char* allocate(self, size_t nbytes) noexcept
    cdef void free(self, char* data) noexcept
    cdef char* acquire(self, size_t nbytes, int* slot) noexcept nogil
    cdef void release(self, char* data, size_t nbytes, int slot) noexcept nogil
    cdef void drop(self, Scratch* scratch) noexcept nogil
    cdef void free_idle(self) noexcept nogil
