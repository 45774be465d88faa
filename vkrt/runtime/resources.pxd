# cython: language_level=3

from libc.stdint cimport uint64_t

from vkrt.vk.device cimport Device
from vkrt.vk.resource cimport Buffer, BufferView


cdef class Resources:
    cdef Device device
    # See `Policy.odd_sizes`
    cdef bint odd
    cdef readonly list handles
    # Of each storage in its handle's buffer, in bytes
    cdef list offsets
    cdef dict views
    # Ids of the storages that are somebody else's
    cdef set shared
    cdef object storages

    cdef tuple range_of(self, operand)
    cdef BufferView texel_view(self, operand)
    cdef bint _has_room(self, operand, Buffer buffer, uint64_t offset, uint64_t nbytes) except -1
    cdef void* host_address(self, operand) except NULL
    # Before the host reads a raw operand, or writes one beside what the device wrote; and after it
    # wrote one
    cdef int invalidate(self, operand) except -1
    cdef int flush(self, operand) except -1
    # Between the memory of a raw operand and a contiguous array
    cdef int copy_in(self, operand, array) except -1
    cdef int copy_out(self, operand, array) except -1
