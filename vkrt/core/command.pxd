"""Command buffers: what an inference consists of on the device."""

from libc.stdint cimport uint32_t, uint64_t

from vkrt.core.device cimport Device
from vkrt.core.error cimport Error
from vkrt.core.vulkan cimport (
    VkBuffer, VkCommandBuffer, VkCommandPool, VkDescriptorSet, VkFlags, VkImage, VkPipeline,
    VkPipelineLayout,
)

# One thread at a time records into the command buffers of a pool.
cdef struct CommandPool:
    Device* device
    VkCommandPool handle
    # One for whoever has made it, and one for each command buffer
    int users
    bint closed

cdef struct CommandBuffer:
    CommandPool* pool
    Device* device
    VkCommandBuffer handle

cdef extern nogil:
    # For the compute queue, or for the queue for copies.
    int make_command_pool "vkrt_make_command_pool"(Device* device, bint uploads, CommandPool* pool,
                                                   Error* error)
    # Destroys the pool; at once, or when its last command buffer is closed.
    void close_command_pool "vkrt_close_command_pool"(CommandPool* pool)
    # The pool's memory stays where it is as long as the command buffer is open.
    int make_command_buffer "vkrt_make_command_buffer"(CommandPool* pool, CommandBuffer* commands,
                                                       Error* error)
    # The device must be done with it.
    void close_command_buffer "vkrt_close_command_buffer"(CommandBuffer* commands)

    # Drops what was recorded. A command buffer that is not `one_time` may be submitted again.
    int begin_commands "vkrt_begin_commands"(const CommandBuffer* commands, bint one_time,
                                             Error* error)
    int end_commands "vkrt_end_commands"(const CommandBuffer* commands, Error* error)

    # What follows records, and takes open objects.
    void bind_pipeline "vkrt_bind_pipeline"(const CommandBuffer* commands, VkPipeline pipeline)
    void bind_descriptors "vkrt_bind_descriptors"(const CommandBuffer* commands,
                                                  VkPipelineLayout layout, VkDescriptorSet set)
    void push_constants "vkrt_push_constants"(
        const CommandBuffer* commands, VkPipelineLayout layout, const void* data, uint32_t size)
    void dispatch "vkrt_dispatch"(const CommandBuffer* commands, uint32_t x, uint32_t y, uint32_t z)
    # Any two stages (VkPipelineStageFlags) and accesses (VkAccessFlags)
    void barrier "vkrt_barrier"(const CommandBuffer* commands, VkFlags source_stages,
                                VkFlags source_access, VkFlags stages, VkFlags access)
    # The same, and images that held nothing, or nothing that is needed, become usable by shaders
    # (layout GENERAL), in the same command.
    int barrier_with_images "vkrt_barrier_with_images"(
        const CommandBuffer* commands, VkFlags source_stages, VkFlags source_access, VkFlags stages,
        VkFlags access, const VkImage* images, uint32_t number, Error* error)
    # Everything before is seen by the host once the fence is signaled.
    void device_to_host "vkrt_device_to_host"(const CommandBuffer* commands)
    void copy_buffer "vkrt_copy_buffer"(const CommandBuffer* commands, VkBuffer source,
                                        uint64_t source_offset, VkBuffer target,
                                        uint64_t target_offset, uint64_t size)
    # Offset and size are multiples of 4 bytes.
    void fill_buffer "vkrt_fill_buffer"(const CommandBuffer* commands, VkBuffer target,
                                        uint64_t offset, uint64_t size, uint32_t word)
    # The bytes go into the command; offset and size are multiples of 4, at most 65,536.
    void update_buffer "vkrt_update_buffer"(const CommandBuffer* commands, VkBuffer target,
                                            uint64_t offset, uint64_t size, const void* data)
