"""Memory blocks of exactly the asked size."""

cimport cython
from libc.stdint cimport uint32_t, uint64_t

from vkrt.core.allocator cimport Allocator as CoreAllocator
from vkrt.core.block cimport Block as CoreBlock
from vkrt.core.memory_types cimport Purpose
from vkrt.vk.device cimport Device


@cython.final
cdef class Allocator:
    cdef Device device
    cdef CoreAllocator core

    # A block of `size` bytes in a memory type of `type_bits` that suits `kind`.
    cpdef Block allocate(self, uint64_t size, uint64_t alignment, uint32_t type_bits,
                         Purpose kind)


@cython.final
cdef class Block:
    cdef Allocator allocator
    cdef CoreBlock core

    # See `vkrt.core.block`.
    cdef int flush(self, uint64_t offset, uint64_t size) except -1 nogil
    cdef int invalidate(self, uint64_t offset, uint64_t size) except -1 nogil
