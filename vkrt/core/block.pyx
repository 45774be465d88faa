from libc.stdio cimport snprintf
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

from vkrt.core.allocator cimport note_peak, release_allocator, retain_allocator
from vkrt.core.atomic cimport atomic_add, atomic_add64, atomic_read, atomic_take, atomic_write
from vkrt.core.device cimport Device, check_usable, reaches_driver, uncount
from vkrt.core.error cimport (
    VKRT_ERROR_DEVICE, VKRT_ERROR_DEVICE_MEMORY, VKRT_ERROR_INPUT, VKRT_OK, Shortage, fail,
    fail_call,
)
from vkrt.core.grouped cimport GROUPED, grouped
from vkrt.core.live cimport BLOCK, count
from vkrt.core.memory_types cimport (
    MAX_MEMORY_HEAPS, MAX_MEMORY_TYPES, MEMORY_DEVICE, suitable_types,
)
from vkrt.core.pages cimport return_pages
from vkrt.core.results cimport FORKED, check_result
from vkrt.core.vma cimport (
    Heap, vkrt_vma_allocate, vkrt_vma_bind_buffer, vkrt_vma_bind_image, vkrt_vma_flush,
    vkrt_vma_free, vkrt_vma_heaps, vkrt_vma_invalidate,
)
from vkrt.core.vulkan cimport *

# How many allocations until the one that fails on purpose; none where there are none left.
cdef int failing


cdef void fail_allocation_after(int n) noexcept nogil:
    atomic_write(&failing, n)


cdef bint fails_on_purpose() noexcept nogil:
    return atomic_read(&failing) > 0 and atomic_add(&failing, -1) == 0


cdef VkFlags flags_of(const Device* device, int memory_type) noexcept nogil:
    return device.memory_properties.memoryTypes[memory_type].propertyFlags


cdef int allocate_block(Allocator* allocator, uint64_t size, uint64_t alignment, uint32_t type_bits,
                        Purpose purpose, Block* block, Error* error) noexcept nogil:
    memset(block, 0, sizeof(block[0]))
    if check_usable(allocator.device, error) or retain_allocator(allocator, error):
        return error.status
    block.allocator = allocator
    if fetch_best(block, size, alignment, type_bits, purpose, error):
        release_allocator(allocator)
        return error.status
    count(BLOCK, 1)
    note_peak(allocator)
    return VKRT_OK


cdef int fetch_best(Block* block, uint64_t size, uint64_t alignment, uint32_t type_bits,
                    Purpose purpose, Error* error) noexcept nogil:
    """Tries the memory types that suit, one after the other while memory runs out."""
    cdef Device* device = block.allocator.device
    cdef int types[MAX_MEMORY_TYPES]
    cdef int result = VK_ERROR_OUT_OF_DEVICE_MEMORY
    cdef int number, i
    cdef bint refuse
    if size == 0:
        return fail(error, VKRT_ERROR_INPUT, b"a block needs at least one byte")
    number = suitable_types(&device.memory_properties, type_bits, purpose, device.unified, types)
    if number == 0:
        return fail_call(error, VKRT_ERROR_DEVICE, 0, b"vkAllocateMemory", b"no memory type of "
                         b"0x%x for a block of kind %d", <unsigned int>type_bits, <int>purpose)
    refuse = fails_on_purpose()
    if not refuse and size <= device.max_allocation:
        for i in range(number):
            result = fetch(block, size, alignment, types[i])
            if result != VK_ERROR_OUT_OF_DEVICE_MEMORY:
                break
    if result < 0:
        return tell_shortage(block.allocator, result, size, types[0], error)
    if (purpose == MEMORY_DEVICE and flags_of(device, types[0])
            & ~flags_of(device, block.memory_type) & VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT):
        atomic_add64(&block.allocator.displaced_bytes, size)
    return VKRT_OK


cdef int fetch(Block* block, uint64_t size, uint64_t alignment, int memory_type) noexcept nogil:
    """One try, in one memory type. Returns the VkResult."""
    cdef const Device* device = block.allocator.device
    cdef VkFlags flags = flags_of(device, memory_type)
    cdef VkMemoryRequirements required
    cdef bint visible = flags & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT != 0
    cdef void* copy = NULL
    cdef int result
    # More than the whole heap may not even be asked of the driver.
    if size > device.memory_properties.memoryHeaps[
            device.memory_properties.memoryTypes[memory_type].heapIndex].size:
        return VK_ERROR_OUT_OF_DEVICE_MEMORY
    required.size = size
    required.alignment = alignment
    required.memoryTypeBits = <uint32_t>1 << (0 if device.has_overrides else memory_type)
    block.coherent = flags & VK_MEMORY_PROPERTY_HOST_COHERENT_BIT != 0
    if device.has_overrides and visible and not block.coherent:
        copy = malloc(size)
        if copy == NULL:
            return VK_ERROR_OUT_OF_HOST_MEMORY
    # Some drivers fill the memory with zeros here.
    result = vkrt_vma_allocate(block.allocator.handle, &required, visible, &block.handle,
                               &block.mapped)
    if result < 0:
        free(copy)
        return result
    block.size = size
    block.memory_type = memory_type
    if copy != NULL:
        block.behind, block.mapped = block.mapped, copy
        # Neither zeros nor alike, so that what was not carried over shows.
        memset(block.behind, 0x5A, size)
        memset(copy, 0xA5, size)
    return result


cdef int tell_shortage(Allocator* allocator, int result, uint64_t size, int memory_type,
                       Error* error) noexcept nogil:
    """What the driver says, with the figures of the heap where memory ran out."""
    cdef Heap[MAX_MEMORY_HEAPS] heaps
    cdef const Device* device = allocator.device
    cdef int heap = device.memory_properties.memoryTypes[memory_type].heapIndex
    cdef char[120] said
    cdef char[GROUPED] asked, used, granted, limit
    cdef char[GROUPED + 60] suffix
    if check_result(result, b"vkAllocateMemory", error) != VKRT_ERROR_DEVICE_MEMORY:
        return error.status
    snprintf(said, sizeof(said), b"%s", <char*>error.text)
    vkrt_vma_heaps(allocator.handle, heaps)
    suffix[0] = 0
    if size > device.max_allocation:
        snprintf(suffix, sizeof(suffix), b"; the device allocates at most %s at once",
                 grouped(device.max_allocation, limit))
    fail_call(error, VKRT_ERROR_DEVICE_MEMORY, result, b"vkAllocateMemory",
              b"%s: asked for %s bytes of heap %d, where this program has %s in use and the budget "
              b"is %s%s", said, grouped(size, asked), heap,
              grouped(heaps[heap].block_bytes, used), grouped(heaps[heap].budget, granted),
              suffix)
    error.shortage = Shortage(asked=size, budget=heaps[heap].budget,
                              in_use=heaps[heap].block_bytes, heap=heap)
    return error.status


cdef void free_block(Block* block) noexcept nogil:
    cdef void* handle = atomic_take(&block.handle)
    cdef void* mapped = block.mapped
    cdef Device* device
    if handle == NULL:
        return
    block.mapped = NULL
    if block.behind != NULL:
        free(mapped)
        mapped, block.behind = block.behind, NULL
    device = block.allocator.device
    if reaches_driver(device):
        if mapped != NULL and device.remove_on_free:
            return_pages(mapped, block.size)
        vkrt_vma_free(block.allocator.handle, handle)
    uncount(device, BLOCK)
    release_allocator(block.allocator)


cdef int check_block(const Block* block, Error* error) noexcept nogil:
    """Fails where VMA would call the driver and may not. Memory that is mapped may be shared with
    the parent."""
    if block.allocator.device.calls.inherited:
        return check_result(FORKED, b"Block", error)
    if block.allocator.device.calls.given_up:
        return check_result(VK_ERROR_DEVICE_LOST, b"Block", error)
    return VKRT_OK


cdef int check_host_range(const Block* block, uint64_t offset, uint64_t size,
                          Error* error) noexcept nogil:
    if check_block(block, error):
        return error.status
    if block.mapped == NULL:
        return fail(error, VKRT_ERROR_INPUT, b"the block is closed or not host-visible")
    if offset > block.size or size > block.size - offset:
        return fail(error, VKRT_ERROR_INPUT, b"%llu bytes at %llu of a block of %llu",
                    <unsigned long long>size, <unsigned long long>offset,
                    <unsigned long long>block.size)
    return VKRT_OK


cdef void carry_atoms(const Block* block, const void* source, void* target, uint64_t offset,
                      uint64_t size) noexcept nogil:
    """What a flush or an invalidation carries: the atoms that a range of bytes touches."""
    # A power of two
    cdef uint64_t atom = block.allocator.device.atom
    cdef uint64_t first = offset & ~(atom - 1)
    cdef uint64_t end = min((offset + size + atom - 1) & ~(atom - 1), block.size)
    if size:
        memcpy(<char*>target + first, <const char*>source + first, end - first)


cdef int flush_block(Block* block, uint64_t offset, uint64_t size, Error* error) noexcept nogil:
    if block.behind != NULL:
        carry_atoms(block, block.mapped, block.behind, offset, size)
    elif not block.coherent:
        if check_block(block, error):
            return error.status
        return check_result(vkrt_vma_flush(block.allocator.handle, block.handle, offset, size),
                            b"vkFlushMappedMemoryRanges", error)
    return VKRT_OK


cdef int invalidate_block(Block* block, uint64_t offset, uint64_t size,
                          Error* error) noexcept nogil:
    if block.behind != NULL:
        carry_atoms(block, block.behind, block.mapped, offset, size)
    elif not block.coherent:
        if check_block(block, error):
            return error.status
        return check_result(
            vkrt_vma_invalidate(block.allocator.handle, block.handle, offset, size),
            b"vkInvalidateMappedMemoryRanges", error)
    return VKRT_OK


cdef int bind_buffer_memory(Block* block, VkBuffer buffer, uint64_t offset,
                            Error* error) noexcept nogil:
    if check_block(block, error):
        return error.status
    return check_result(vkrt_vma_bind_buffer(block.allocator.handle, block.handle, offset, buffer),
                        b"vkBindBufferMemory2", error)


cdef int bind_image_memory(Block* block, VkImage image, uint64_t offset,
                           Error* error) noexcept nogil:
    if check_block(block, error):
        return error.status
    return check_result(vkrt_vma_bind_image(block.allocator.handle, block.handle, offset, image),
                        b"vkBindImageMemory2", error)
