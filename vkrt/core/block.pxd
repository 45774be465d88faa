"""Blocks: device memory of one vkAllocateMemory of exactly the bytes asked for, mapped for its
whole life where the host sees it."""

from libc.stdint cimport uint32_t, uint64_t

from vkrt.core.allocator cimport Allocator
from vkrt.core.error cimport Error
from vkrt.core.memory_types cimport Purpose
from vkrt.core.vulkan cimport VkBuffer, VkImage

cdef struct Block:
    Allocator* allocator
    void* handle  # VmaAllocation
    # First byte that the host sees, or NULL where the memory is not host-visible
    void* mapped
    # Where a test wants `mapped` to be a copy (see `vkrt.vk.device_override`), the first byte of
    # the memory itself; else NULL
    void* behind
    uint64_t size
    uint32_t memory_type
    # Host accesses need no flush and no invalidation.
    bint coherent

cdef extern nogil:
    # A block of `size` bytes in a memory type of `type_bits` that suits the purpose. What failed
    # needs no `free_block`. Where memory ran out the error tells the shortage.
    #   alignment: bytes, of what will be at the block's start
    int allocate_block "vkrt_allocate_block"(Allocator* allocator, uint64_t size,
                                             uint64_t alignment, uint32_t type_bits,
                                             Purpose purpose, Block* block, Error* error)
    # The device must be done with it. May be called again.
    void free_block "vkrt_free_block"(Block* block)
    # Needed (and effective) only for memory that is not coherent: a flush after host writes, an
    # invalidation before host reads. Both carry whole atoms of memory, so that an invalidation
    # comes before host writes too where the device wrote the rest of an atom.
    int flush_block "vkrt_flush_block"(Block* block, uint64_t offset, uint64_t size, Error* error)
    int invalidate_block "vkrt_invalidate_block"(Block* block, uint64_t offset, uint64_t size,
                                                 Error* error)
    # Fails where the host does not see these bytes.
    int check_host_range "vkrt_check_host_range"(const Block* block, uint64_t offset, uint64_t size,
                                                 Error* error)
    # The place was checked before. VMA has to bind what it allocated.
    int bind_buffer_memory "vkrt_bind_buffer_memory"(Block* block, VkBuffer buffer, uint64_t offset,
                                                     Error* error)
    int bind_image_memory "vkrt_bind_image_memory"(Block* block, VkImage image, uint64_t offset,
                                                   Error* error)
    # Lets the n-th allocation from now on fail as if device memory had run out, once. For tests. 1
    # is the next one; 0 takes the order back.
    void fail_allocation_after "vkrt_fail_allocation_after"(int n)
