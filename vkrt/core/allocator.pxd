"""An account of the device memory that blocks are made of."""

from libc.stdint cimport uint32_t, uint64_t

from vkrt.core.device cimport Device
from vkrt.core.error cimport Error

cdef struct Allocator:
    Device* device
    void* handle  # VmaAllocator
    # One for whoever has opened it, and one for each block
    int users
    bint closed
    # The most that was allocated at once
    uint64_t peak_block_bytes
    uint64_t peak_allocation_bytes
    # Of blocks that should be device-local and came to lie in other memory, all that ever were
    uint64_t displaced_bytes

# Of vkAllocateMemory, and of what was asked for: now, and at most since the start.
cdef struct Statistics:
    uint64_t block_bytes
    uint64_t allocation_bytes
    uint32_t block_count
    uint32_t allocation_count
    uint64_t peak_block_bytes
    uint64_t peak_allocation_bytes

cdef extern nogil:
    # What failed needs no `close_allocator`.
    int open_allocator "vkrt_open_allocator"(Device* device, Allocator* allocator, Error* error)
    # Ends the account; at once, or when its last block is freed. Its memory stays its owner's.
    void close_allocator "vkrt_close_allocator"(Allocator* allocator)
    # Nothing is allocated where no call may reach the driver.
    void read_statistics "vkrt_read_statistics"(Allocator* allocator, Statistics* statistics)

    # For blocks
    int retain_allocator "vkrt_retain_allocator"(Allocator* allocator, Error* error)
    void release_allocator "vkrt_release_allocator"(Allocator* allocator)
    void note_peak "vkrt_note_peak"(Allocator* allocator)
