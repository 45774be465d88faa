# cython: language_level=3
"""Command buffers and fences."""

cimport cython
from libc.stdint cimport uint32_t, uint64_t

from vkrt.vk.api cimport (
    VkBuffer, VkCommandBuffer, VkCommandPool, VkDescriptorSet, VkFence, VkFlags,
    VkPipeline, VkPipelineLayout, VkQueryPool,
)
from vkrt.vk.device cimport Device


# One thread at a time records into the command buffers of a pool.
@cython.final
cdef class CommandPool:
    cdef Device device
    cdef VkCommandPool handle
    cdef bint closed
    cdef int children

    cdef void destroy(self) noexcept


@cython.final
cdef class CommandBuffer:
    cdef CommandPool pool
    cdef Device device
    cdef VkCommandBuffer handle

    # Drops what was recorded. A command buffer that is not `one_time` may be submitted again.
    cpdef int begin(self, bint one_time) except -1 nogil
    cpdef int end(self) except -1 nogil
    cdef void bind_pipeline(self, VkPipeline pipeline) noexcept nogil
    cdef void bind_descriptors(self, VkPipelineLayout layout, VkDescriptorSet set) noexcept nogil
    cdef void push_constants(self, VkPipelineLayout layout, const void* data,
                             uint32_t size) noexcept nogil
    cdef void dispatch(self, uint32_t x, uint32_t y, uint32_t z) noexcept nogil
    # Any two stages (VkPipelineStageFlags) and accesses (VkAccessFlags)
    cpdef void barrier(self, VkFlags source_stages, VkFlags source_access, VkFlags stages,
                       VkFlags access) noexcept nogil
    # The same, and images (each an `Image`) that held nothing, or nothing that is needed, become
    # usable by shaders (layout GENERAL).
    cdef int barrier_with_images(self, VkFlags source_stages, VkFlags source_access,
                                 VkFlags stages, VkFlags access, images) except -1
    # Everything before is seen by the host once the fence is signaled.
    cpdef void device_to_host(self) noexcept nogil
    cdef void copy_buffer(self, VkBuffer source, uint64_t source_offset, VkBuffer target,
                          uint64_t target_offset, uint64_t size) noexcept nogil
    # Offset and size are multiples of 4 bytes.
    cdef void fill_buffer(self, VkBuffer target, uint64_t offset, uint64_t size,
                          uint32_t word) noexcept nogil
    # The bytes go into the command; offset and size are multiples of 4, at most 65,536.
    cdef void update_buffer(self, VkBuffer target, uint64_t offset, uint64_t size,
                            const void* data) noexcept nogil
    # Resets `number` queries; then each write_timestamp(i) is of the moment all commands before
    # it are done.
    cdef void reset_timestamps(self, VkQueryPool queries, uint32_t number) noexcept nogil
    cdef void write_timestamp(self, VkQueryPool queries, uint32_t index) noexcept nogil
    cdef void destroy(self) noexcept


@cython.final
cdef class Fence:
    cdef Device device
    cdef VkFence handle

    cdef void destroy(self) noexcept


# Resets the fence and submits; safe from several threads.
cdef int submit(Device device, CommandBuffer commands, Fence fence) except -1 nogil
# 1 when the fence is signaled, 0 when `timeout` nanoseconds passed before. Raises only where the
# device is done with what it was given, because it is lost, or was given up.
cdef int wait(Fence fence, uint64_t timeout) except -1 nogil
# The same for a fence that is nobody's.
cdef int wait_for(Device device, VkFence fence, uint64_t timeout) except -1 nogil
# Refuses what was closed: drivers crash on a handle that is null.
cdef int need(void* handle) except -1 nogil
