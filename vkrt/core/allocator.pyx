"""Where things lie in a block was planned before, so the allocator underneath (VMA) fetches, binds
and counts, and never pools."""

from libc.string cimport memset

from vkrt.core.atomic cimport atomic_add, atomic_join, atomic_raise, atomic_read64
from vkrt.core.device cimport check_created, count_destroyed, reaches_driver, retain_device
from vkrt.core.error cimport VKRT_ERROR_CLOSED, VKRT_OK, fail
from vkrt.core.features cimport has_feature
from vkrt.core.live cimport ALLOCATOR
from vkrt.core.memory_types cimport MAX_MEMORY_HEAPS
from vkrt.core.vma cimport Heap, vkrt_vma_close, vkrt_vma_heaps, vkrt_vma_open
from vkrt.core.vulkan cimport VK_API_VERSION_1_3


cdef int open_allocator(Device* device, Allocator* allocator, Error* error) noexcept nogil:
    cdef int result
    memset(allocator, 0, sizeof(allocator[0]))
    if retain_device(device, error):
        return error.status
    result = vkrt_vma_open(
        device.instance.handle, device.physical, device.handle,
        device.instance.vk.vkGetInstanceProcAddr, device.instance.vk.vkGetDeviceProcAddr,
        min(device.api_version, <uint32_t>VK_API_VERSION_1_3),
        has_feature(device.features, b"memory_budget"), &allocator.handle)
    if check_created(device, result, ALLOCATOR, b"vmaCreateAllocator", error):
        return error.status
    allocator.device = device
    allocator.users = 1
    return VKRT_OK


cdef void close_allocator(Allocator* allocator) noexcept nogil:
    if allocator.users > 0 and not allocator.closed:
        allocator.closed = True
        release_allocator(allocator)


cdef int retain_allocator(Allocator* allocator, Error* error) noexcept nogil:
    if atomic_join(&allocator.users):
        if not allocator.closed:
            return VKRT_OK
        release_allocator(allocator)
    return fail(error, VKRT_ERROR_CLOSED, b"the allocator is closed")


cdef void release_allocator(Allocator* allocator) noexcept nogil:
    cdef void* handle = allocator.handle
    if atomic_add(&allocator.users, -1) > 0:
        return
    allocator.handle = NULL
    # VMA has its own table of functions, and locks.
    if reaches_driver(allocator.device):
        vkrt_vma_close(handle)
    count_destroyed(allocator.device, ALLOCATOR)


cdef Heap sum_of_heaps(Allocator* allocator) noexcept nogil:
    cdef Heap[MAX_MEMORY_HEAPS] heaps
    cdef Heap total
    cdef int i
    memset(&total, 0, sizeof(total))
    vkrt_vma_heaps(allocator.handle, heaps)
    for i in range(MAX_MEMORY_HEAPS):
        total.block_count += heaps[i].block_count
        total.allocation_count += heaps[i].allocation_count
        total.block_bytes += heaps[i].block_bytes
        total.allocation_bytes += heaps[i].allocation_bytes
    return total


cdef void note_peak(Allocator* allocator) noexcept nogil:
    cdef Heap now = sum_of_heaps(allocator)
    atomic_raise(&allocator.peak_block_bytes, now.block_bytes)
    atomic_raise(&allocator.peak_allocation_bytes, now.allocation_bytes)


cdef void read_statistics(Allocator* allocator, Statistics* statistics) noexcept nogil:
    cdef Heap now
    memset(&now, 0, sizeof(now))
    if allocator.handle != NULL and reaches_driver(allocator.device):
        now = sum_of_heaps(allocator)
    statistics.block_bytes = now.block_bytes
    statistics.allocation_bytes = now.allocation_bytes
    statistics.block_count = now.block_count
    statistics.allocation_count = now.allocation_count
    statistics.peak_block_bytes = atomic_read64(&allocator.peak_block_bytes)
    statistics.peak_allocation_bytes = atomic_read64(&allocator.peak_allocation_bytes)
