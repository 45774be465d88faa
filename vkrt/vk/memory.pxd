# cython: language_level=3
"""Memory blocks of exactly the asked size, and the buffers and images bound into them."""

cimport cython
from libc.stdint cimport uint32_t, uint64_t

from vkrt.vk.api cimport VkBuffer, VkBufferView, VkImage, VkImageView, VkMemoryRequirements
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
    cdef void destroy(self) noexcept


@cython.final
cdef class Buffer:
    cdef Device device
    # The block it is bound to, or None; and where
    cdef readonly Block block
    cdef readonly uint64_t offset
    cdef VkBuffer handle
    cdef readonly uint64_t size
    cdef VkMemoryRequirements required

    cdef void destroy(self) noexcept


@cython.final
cdef class BufferView:
    cdef Buffer buffer
    cdef Device device
    cdef VkBufferView handle

    cdef void destroy(self) noexcept


@cython.final
cdef class Image:
    cdef Device device
    cdef readonly Block block
    cdef readonly uint64_t offset
    cdef VkImage handle
    cdef VkImageView view_handle
    cdef readonly tuple extent
    cdef readonly int format
    cdef VkMemoryRequirements required

    # The one view of the whole image, created on first use (after bind).
    cdef VkImageView view(self) except NULL
    cdef void destroy(self) noexcept
