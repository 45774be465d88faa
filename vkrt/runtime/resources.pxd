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

    # Of weights on their way, while there is one
    cdef Buffer staging

    # Parts of storages are `vkrt.executable.records.Range`s.
    cdef Buffer buffer(self, int storage)
    cdef tuple place_of(self, part)
    cdef BufferView texel_view(self, part, int format)
    cdef bint _has_room(self, part, Buffer buffer, uint64_t offset) except -1
    cdef void* host_address(self, part) except NULL
    # Before the host reads a part, or writes one beside what the device wrote; and after it wrote
    # one
    cdef int invalidate(self, part) except -1
    cdef int flush(self, part) except -1
    # Between a part and a contiguous array
    cdef int copy_in(self, part, array) except -1
    cdef int copy_out(self, part, array) except -1
