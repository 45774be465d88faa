from libc.stdlib cimport calloc, free
from libc.string cimport memset

from vkrt.core.atomic cimport atomic_add, atomic_take
from vkrt.core.device cimport create_child, destroy_child, uncount
from vkrt.core.error cimport VKRT_ERROR_CLOSED, VKRT_ERROR_MEMORY, VKRT_OK, fail, need
from vkrt.core.live cimport COMMAND_BUFFER, COMMAND_POOL, count
from vkrt.core.results cimport check_result
from vkrt.core.vulkan cimport *


cdef int make_command_pool(Device* device, bint uploads, CommandPool* pool,
                           Error* error) noexcept nogil:
    cdef VkCommandPoolCreateInfo info
    memset(pool, 0, sizeof(pool[0]))
    clear_struct(&info, VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO)
    info.flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT
    info.queueFamilyIndex = device.upload_family if uploads else device.queue_family
    pool.device, pool.users = device, 1
    return create_child(device, COMMAND_POOL, &info, &pool.handle, error)


cdef void release_pool(CommandPool* pool) noexcept nogil:
    if atomic_add(&pool.users, -1) == 0:
        destroy_child(pool.device, COMMAND_POOL, &pool.handle)


cdef void close_command_pool(CommandPool* pool) noexcept nogil:
    if pool.handle != VK_NULL_HANDLE and not pool.closed:
        pool.closed = True
        release_pool(pool)


cdef int make_command_buffer(CommandPool* pool, CommandBuffer* commands,
                             Error* error) noexcept nogil:
    cdef VkCommandBufferAllocateInfo info
    cdef VkCommandBuffer handle = NULL
    memset(commands, 0, sizeof(commands[0]))
    if pool.closed or pool.handle == VK_NULL_HANDLE:
        return fail(error, VKRT_ERROR_CLOSED, b"the command pool is closed")
    clear_struct(&info, VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO)
    info.commandPool = pool.handle
    info.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY
    info.commandBufferCount = 1
    if check_result(pool.device.vk.vkAllocateCommandBuffers(pool.device.handle, &info, &handle),
                    b"vkAllocateCommandBuffers", error):
        return error.status
    atomic_add(&pool.users, 1)
    count(COMMAND_BUFFER, 1)
    commands.pool = pool
    commands.device = pool.device
    commands.handle = handle
    return VKRT_OK


cdef void close_command_buffer(CommandBuffer* commands) noexcept nogil:
    cdef VkCommandBuffer handle = atomic_take(&commands.handle)
    if handle == NULL:
        return
    commands.device.vk.vkFreeCommandBuffers(commands.device.handle, commands.pool.handle, 1,
                                            &handle)
    uncount(commands.device, COMMAND_BUFFER)
    release_pool(commands.pool)


cdef int begin_commands(const CommandBuffer* commands, bint one_time,
                        Error* error) noexcept nogil:
    cdef VkCommandBufferBeginInfo info
    if need(commands.handle != NULL, error):
        return error.status
    clear_struct(&info, VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO)
    if one_time:
        info.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT
    return check_result(commands.device.vk.vkBeginCommandBuffer(commands.handle, &info),
                        b"vkBeginCommandBuffer", error)


cdef int end_commands(const CommandBuffer* commands, Error* error) noexcept nogil:
    if need(commands.handle != NULL, error):
        return error.status
    return check_result(commands.device.vk.vkEndCommandBuffer(commands.handle),
                        b"vkEndCommandBuffer", error)


cdef void bind_pipeline(const CommandBuffer* commands, VkPipeline pipeline) noexcept nogil:
    commands.device.vk.vkCmdBindPipeline(commands.handle, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline)


cdef void bind_descriptors(const CommandBuffer* commands, VkPipelineLayout layout,
                           VkDescriptorSet set) noexcept nogil:
    commands.device.vk.vkCmdBindDescriptorSets(
        commands.handle, VK_PIPELINE_BIND_POINT_COMPUTE, layout, 0, 1, &set, 0, NULL)


cdef void push_constants(const CommandBuffer* commands, VkPipelineLayout layout, const void* data,
                         uint32_t size) noexcept nogil:
    commands.device.vk.vkCmdPushConstants(
        commands.handle, layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, size, data)


cdef void dispatch(const CommandBuffer* commands, uint32_t x, uint32_t y,
                   uint32_t z) noexcept nogil:
    commands.device.vk.vkCmdDispatch(commands.handle, x, y, z)


cdef VkMemoryBarrier memory_barrier(VkFlags source_access, VkFlags access) noexcept nogil:
    cdef VkMemoryBarrier memory
    clear_struct(&memory, VK_STRUCTURE_TYPE_MEMORY_BARRIER)
    memory.srcAccessMask = source_access
    memory.dstAccessMask = access
    return memory


cdef void barrier(const CommandBuffer* commands, VkFlags source_stages, VkFlags source_access,
                  VkFlags stages, VkFlags access) noexcept nogil:
    cdef VkMemoryBarrier memory = memory_barrier(source_access, access)
    commands.device.vk.vkCmdPipelineBarrier(
        commands.handle, source_stages, stages, 0, 1, &memory, 0, NULL, 0, NULL)


# The change of a layout writes the image's memory. It comes behind everything in the first scope,
# because another tenant of that memory may still be read or written there.
cdef void describe_change(VkImageMemoryBarrier* change, VkImage image,
                          VkFlags source_access) noexcept nogil:
    clear_struct(change, VK_STRUCTURE_TYPE_IMAGE_MEMORY_BARRIER)
    change.srcAccessMask = source_access
    change.dstAccessMask = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT
    change.oldLayout = VK_IMAGE_LAYOUT_UNDEFINED
    change.newLayout = VK_IMAGE_LAYOUT_GENERAL
    change.srcQueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED
    change.dstQueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED
    change.image = image
    change.subresourceRange.aspectMask = VK_IMAGE_ASPECT_COLOR_BIT
    change.subresourceRange.levelCount = 1
    change.subresourceRange.layerCount = 1


cdef int barrier_with_images(const CommandBuffer* commands, VkFlags source_stages,
                             VkFlags source_access, VkFlags stages, VkFlags access,
                             const VkImage* images, uint32_t number,
                             Error* error) noexcept nogil:
    cdef VkMemoryBarrier memory = memory_barrier(source_access, access)
    cdef VkImageMemoryBarrier* changes
    cdef uint32_t i
    if number == 0:
        barrier(commands, source_stages, source_access, stages, access)
        return VKRT_OK
    changes = <VkImageMemoryBarrier*>calloc(number, sizeof(VkImageMemoryBarrier))
    if changes == NULL:
        return fail(error, VKRT_ERROR_MEMORY,
                    b"a barrier of %u images: the host is out of memory", number)
    for i in range(number):
        describe_change(&changes[i], images[i], source_access)
    commands.device.vk.vkCmdPipelineBarrier(
        commands.handle, source_stages, stages | VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, 0, 1,
        &memory, 0, NULL, number, changes)
    free(changes)
    return VKRT_OK


cdef void device_to_host(const CommandBuffer* commands) noexcept nogil:
    barrier(commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT,
            VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT,
            VK_PIPELINE_STAGE_HOST_BIT, VK_ACCESS_HOST_READ_BIT)


cdef void copy_buffer(const CommandBuffer* commands, VkBuffer source, uint64_t source_offset,
                      VkBuffer target, uint64_t target_offset, uint64_t size) noexcept nogil:
    cdef VkBufferCopy region
    region.srcOffset = source_offset
    region.dstOffset = target_offset
    region.size = size
    commands.device.vk.vkCmdCopyBuffer(commands.handle, source, target, 1, &region)


cdef void fill_buffer(const CommandBuffer* commands, VkBuffer target, uint64_t offset,
                      uint64_t size, uint32_t word) noexcept nogil:
    commands.device.vk.vkCmdFillBuffer(commands.handle, target, offset, size, word)


cdef void update_buffer(const CommandBuffer* commands, VkBuffer target, uint64_t offset,
                        uint64_t size, const void* data) noexcept nogil:
    commands.device.vk.vkCmdUpdateBuffer(commands.handle, target, offset, size, data)
