# cython: language_level=3
"""Memory blocks of exactly the asked size."""

cimport cython
from libc.stdint cimport uint32_t, uint64_t

from vkrt.vk.api cimport VkBuffer, VkImage
from vkrt.vk.device cimport Device

# What a block is for. DEVICE: device-local (and mapped where the device is unified); STAGING:
# host-visible and coherent, written in order; READBACK: host-visible, cached where there is such.
cpdef enum MemoryKind:
    MEMORY_DEVICE
    MEMORY_STAGING
    MEMORY_READBACK


@cython.final
cdef class Allocator:
    cdef Device device
    cdef void* handle  # VmaAllocator
    cdef readonly bint closed
    cdef int children
    cdef readonly uint64_t peak_block_bytes
    cdef readonly uint64_t peak_allocation_bytes

    # A block of `size` bytes in a memory type of `type_bits` that suits `kind`.
    cpdef Block allocate(self, uint64_t size, uint64_t alignment, uint32_t type_bits,
                         MemoryKind kind)
    cdef int note_peak(self) noexcept
    cdef void release(self) noexcept
    cdef void destroy(self) noexcept


@cython.final
cdef class Block:
    cdef Allocator allocator
    cdef void* handle  # VmaAllocation
    # First byte, or NULL where the memory is not host-visible
    cdef void* mapped
    cdef readonly uint64_t size
    cdef readonly uint32_t memory_type
    cdef readonly bint coherent

    # Needed (and effective) only for memory that is not coherent: after host writes, before host
    # reads. VK_WHOLE_SIZE as size is the rest.
    cdef int flush(self, uint64_t offset, uint64_t size) except -1 nogil
    cdef int invalidate(self, uint64_t offset, uint64_t size) except -1 nogil
    # Raises ForkedError in a child that was forked after the block was allocated.
    cdef int check_process(self) except -1 nogil
    cdef int bind_buffer(self, VkBuffer buffer, uint64_t offset) except -1
    cdef int bind_image(self, VkImage image, uint64_t offset) except -1
    cdef void destroy(self) noexcept
