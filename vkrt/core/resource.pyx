from libc.string cimport memset

from vkrt.core.block cimport allocate_block, bind_buffer_memory, bind_image_memory
from vkrt.core.device cimport create_child, create_handle, destroy_child, destroy_handle
from vkrt.core.error cimport VKRT_ERROR_INPUT, VKRT_OK, fail
from vkrt.core.live cimport BUFFER, BUFFER_VIEW, IMAGE, IMAGE_VIEW
from vkrt.core.vulkan cimport *


cdef void override_requirements(const Device* device,
                                VkMemoryRequirements* required) noexcept nogil:
    """Where the memory types are not the driver's, all of them suit."""
    if device.has_overrides:
        required.memoryTypeBits = (
            <uint32_t>-1 >> (32 - device.memory_properties.memoryTypeCount))


cdef int check_place(const MemoryBinding* memory, bint exists, const Device* device,
                     const Block* block, uint64_t offset, Error* error) noexcept nogil:
    """Fails where a place in a block does not meet the requirements."""
    cdef const VkMemoryRequirements* required = &memory.required
    if not exists or memory.bound:
        return fail(error, VKRT_ERROR_INPUT, b"the buffer or image is closed or bound already")
    if block.handle == NULL:
        return fail(error, VKRT_ERROR_INPUT, b"the block is closed")
    if block.allocator.device != device:
        return fail(error, VKRT_ERROR_INPUT, b"the block is of another device")
    if not required.memoryTypeBits >> block.memory_type & 1:
        return fail(error, VKRT_ERROR_INPUT, b"memory type %u does not suit",
                    <unsigned int>block.memory_type)
    # Alignments are powers of two.
    if (offset & (required.alignment - 1) or offset > block.size
            or required.size > block.size - offset):
        return fail(error, VKRT_ERROR_INPUT,
                    b"%llu bytes (alignment %llu) at %llu of a block of %llu",
                    <unsigned long long>required.size, <unsigned long long>required.alignment,
                    <unsigned long long>offset, <unsigned long long>block.size)
    return VKRT_OK


cdef int make_buffer(Device* device, uint64_t size, uint32_t usage, BufferUse use, Buffer* buffer,
                     Error* error) noexcept nogil:
    cdef uint32_t[2] families
    cdef VkBufferCreateInfo info
    cdef VkExternalMemoryBufferCreateInfo external
    memset(buffer, 0, sizeof(buffer[0]))
    if size == 0:
        return fail(error, VKRT_ERROR_INPUT, b"a buffer needs at least one byte")
    buffer.device = device
    buffer.size = size
    clear_struct(&info, VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO)
    info.size = size
    info.usage = usage
    info.sharingMode = VK_SHARING_MODE_EXCLUSIVE
    if use & IMPORTED:
        clear_struct(&external, VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO)
        external.handleTypes = VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT
        info.pNext = &external
    families[0], families[1] = device.queue_family, device.upload_family
    if use & SHARED and families[0] != families[1]:
        info.sharingMode = VK_SHARING_MODE_CONCURRENT
        info.queueFamilyIndexCount = 2
        info.pQueueFamilyIndices = families
    if create_child(device, BUFFER, &info, &buffer.handle, error):
        return error.status
    device.vk.vkGetBufferMemoryRequirements(device.handle, buffer.handle, &buffer.memory.required)
    override_requirements(device, &buffer.memory.required)
    return VKRT_OK


cdef int adopt_buffer(Buffer* buffer, Device* device, VkBuffer handle, uint64_t size,
                      Error* error) noexcept nogil:
    memset(buffer, 0, sizeof(buffer[0]))
    if size == 0:
        return fail(error, VKRT_ERROR_INPUT, b"a buffer needs at least one byte")
    buffer.device = device
    buffer.handle = handle
    buffer.size = size
    buffer.is_external = buffer.memory.bound = True
    return VKRT_OK


cdef int bind_buffer(Buffer* buffer, Block* block, uint64_t offset, Error* error) noexcept nogil:
    if (check_place(&buffer.memory, buffer.handle != VK_NULL_HANDLE, buffer.device, block, offset,
                    error)
            or bind_buffer_memory(block, buffer.handle, offset, error)):
        return error.status
    buffer.memory.bound, buffer.memory.block, buffer.memory.offset = True, block, offset
    return VKRT_OK


cdef void close_buffer(Buffer* buffer) noexcept nogil:
    if not buffer.is_external:
        destroy_child(buffer.device, BUFFER, &buffer.handle)
    buffer.handle = VK_NULL_HANDLE
    buffer.memory.bound, buffer.memory.block = False, NULL


cdef int make_buffer_and_block(Allocator* allocator, uint64_t size, uint32_t usage, BufferUse use,
                               Purpose purpose, Buffer* buffer, Block* block,
                               Error* error) noexcept nogil:
    cdef const VkMemoryRequirements* required = &buffer.memory.required
    return (make_buffer(allocator.device, size, usage, use, buffer, error)
            or allocate_block(allocator, required.size, required.alignment, required.memoryTypeBits,
                              purpose, block, error)
            or bind_buffer(buffer, block, 0, error))


cdef int check_range(const Buffer* buffer, uint64_t offset, uint64_t range,
                     Error* error) noexcept nogil:
    # Kernels trust the range of a descriptor, and drivers need not check it.
    if not range or offset > buffer.size or range > buffer.size - offset:
        return fail(error, VKRT_ERROR_INPUT, b"%llu bytes at %llu of a buffer of %llu",
                    <unsigned long long>range, <unsigned long long>offset,
                    <unsigned long long>buffer.size)
    return VKRT_OK


cdef int make_buffer_view(const Buffer* buffer, VkFormat format, uint64_t offset, uint64_t range,
                          BufferView* view, Error* error) noexcept nogil:
    cdef VkBufferViewCreateInfo info
    memset(view, 0, sizeof(view[0]))
    if not buffer.memory.bound:
        return fail(error, VKRT_ERROR_INPUT, b"the buffer is not bound")
    if check_range(buffer, offset, range, error):
        return error.status
    view.device = buffer.device
    clear_struct(&info, VK_STRUCTURE_TYPE_BUFFER_VIEW_CREATE_INFO)
    info.buffer = buffer.handle
    info.format = format
    info.offset = offset
    info.range = range
    return create_child(view.device, BUFFER_VIEW, &info, &view.handle, error)


cdef void close_buffer_view(BufferView* view) noexcept nogil:
    destroy_child(view.device, BUFFER_VIEW, &view.handle)


cdef int make_image(Device* device, VkExtent3D extent, VkFormat format, uint32_t usage,
                    Image* image, Error* error) noexcept nogil:
    cdef VkImageCreateInfo info
    memset(image, 0, sizeof(image[0]))
    if extent.width == 0 or extent.height == 0 or extent.depth == 0:
        return fail(error, VKRT_ERROR_INPUT, b"an image of (%u, %u, %u) texels",
                    <unsigned int>extent.width, <unsigned int>extent.height,
                    <unsigned int>extent.depth)
    image.device = device
    image.extent = extent
    image.format = format
    clear_struct(&info, VK_STRUCTURE_TYPE_IMAGE_CREATE_INFO)
    info.imageType = VK_IMAGE_TYPE_3D
    info.format = format
    info.extent = extent
    info.mipLevels = 1
    info.arrayLayers = 1
    info.samples = VK_SAMPLE_COUNT_1_BIT
    info.tiling = VK_IMAGE_TILING_OPTIMAL
    info.usage = usage
    info.sharingMode = VK_SHARING_MODE_EXCLUSIVE
    info.initialLayout = VK_IMAGE_LAYOUT_UNDEFINED
    if create_child(device, IMAGE, &info, &image.handle, error):
        return error.status
    device.vk.vkGetImageMemoryRequirements(device.handle, image.handle, &image.memory.required)
    override_requirements(device, &image.memory.required)
    return VKRT_OK


cdef int bind_image(Image* image, Block* block, uint64_t offset, Error* error) noexcept nogil:
    if (check_place(&image.memory, image.handle != VK_NULL_HANDLE, image.device, block, offset,
                    error)
            or bind_image_memory(block, image.handle, offset, error)):
        return error.status
    image.memory.bound, image.memory.block, image.memory.offset = True, block, offset
    return VKRT_OK


cdef int get_image_view(Image* image, VkImageView* view, Error* error) noexcept nogil:
    cdef VkImageViewCreateInfo info
    if image.view == VK_NULL_HANDLE:
        if not image.memory.bound:
            return fail(error, VKRT_ERROR_INPUT, b"the image is not bound")
        clear_struct(&info, VK_STRUCTURE_TYPE_IMAGE_VIEW_CREATE_INFO)
        info.image = image.handle
        info.viewType = VK_IMAGE_VIEW_TYPE_3D
        info.format = image.format
        info.subresourceRange.aspectMask = VK_IMAGE_ASPECT_COLOR_BIT
        info.subresourceRange.levelCount = 1
        info.subresourceRange.layerCount = 1
        if create_handle(image.device, IMAGE_VIEW, &info, &image.view, error):
            return error.status
    view[0] = image.view
    return VKRT_OK


cdef void close_image(Image* image) noexcept nogil:
    image.memory.bound, image.memory.block = False, NULL
    destroy_handle(image.device, IMAGE_VIEW, &image.view)
    destroy_child(image.device, IMAGE, &image.handle)


cdef VkMemoryRequirements both_requirements(VkMemoryRequirements needs,
                                            VkMemoryRequirements others) noexcept nogil:
    return VkMemoryRequirements(
        size=max(needs.size, others.size), alignment=max(needs.alignment, others.alignment),
        memoryTypeBits=needs.memoryTypeBits & others.memoryTypeBits)


cdef int buffer_requirements(Device* device, uint64_t size, uint32_t usage, bint shared,
                             VkMemoryRequirements* needs, Error* error) noexcept nogil:
    cdef Buffer buffer
    if make_buffer(device, size, usage, COMPUTE_ONLY, &buffer, error):
        return error.status
    needs[0] = buffer.memory.required
    close_buffer(&buffer)
    if shared and device.upload_family != device.queue_family:
        if make_buffer(device, size, usage, SHARED, &buffer, error):
            return error.status
        needs[0] = both_requirements(needs[0], buffer.memory.required)
        close_buffer(&buffer)
    return VKRT_OK


cdef int image_requirements(Device* device, VkExtent3D extent, VkFormat format, uint32_t usage,
                            VkMemoryRequirements* needs, Error* error) noexcept nogil:
    cdef Image image
    if make_image(device, extent, format, usage, &image, error):
        return error.status
    needs[0] = image.memory.required
    close_image(&image)
    return VKRT_OK
