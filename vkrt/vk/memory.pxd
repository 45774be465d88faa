# cython: language_level=3
"""Memory blocks of exactly the asked size."""

cimport cython
from libc.stdint cimport uint32_t, uint64_t

from vkrt.vk.api cimport VkBuffer, VkImage
from vkrt.vk.device cimport Device

# What a block is for, see vkrt.vk.memory_types. DEVICE: device-local as far as there is such (and
# mapped where the device is unified); STAGING: host-visible and coherent, written in order;
# READBACK: host-visible, cached where there is such.
cdef enum Purpose:
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
    # Of blocks that should be device-local and came to lie in other memory, all that ever were
    cdef readonly uint64_t displaced_bytes

    # A block of `size` bytes in a memory type of `type_bits` that suits `kind`.
    cpdef Block allocate(self, uint64_t size, uint64_t alignment, uint32_t type_bits,
                         Purpose kind)
    # One try, in one memory type. Negative is a VkResult.
    cdef int fetch(self, Block block, uint64_t size, uint64_t alignment, int memory_type) except? -1
    cdef int note_peak(self) noexcept
    cdef void release(self) noexcept
    cdef void destroy(self) noexcept


@cython.final
cdef class Block:
    cdef Allocator allocator
    cdef void* handle  # VmaAllocation
    # First byte that the host sees, or NULL where the memory is not host-visible
    cdef void* mapped
    # Where a test wants `mapped` to be a copy (see vkrt.vk.pretence), the first byte of the memory
    # itself and the size of an atom; else NULL
    cdef void* behind
    cdef uint64_t atom
    cdef readonly uint64_t size
    cdef readonly uint32_t memory_type
    cdef readonly bint coherent

    # Needed (and effective) only for memory that is not coherent: `flush` after host writes,
    # `invalidate` before host reads. Both carry whole atoms of memory, so that `invalidate` comes
    # before host writes too where the device wrote the rest of an atom.
    cdef int flush(self, uint64_t offset, uint64_t size) except -1 nogil
    cdef int invalidate(self, uint64_t offset, uint64_t size) except -1 nogil
    # Raises ForkedError in a child that was forked after the block was allocated.
    cdef int check_process(self) except -1 nogil
    cdef int bind_buffer(self, VkBuffer buffer, uint64_t offset) except -1
    cdef int bind_image(self, VkImage image, uint64_t offset) except -1
    cdef void destroy(self) noexcept
