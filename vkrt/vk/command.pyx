# cython: language_level=3
"""Command buffers and fences: what an inference consists of on the device.

The methods that record are cdef and nogil, on raw handles, so that a program of thousands of
dispatches is recorded without an object in between; the `record_*` methods wrap them for Python.
"""

cimport cython
from libc.stdint cimport uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from vkrt.vk.api cimport *
from vkrt.vk.check cimport COMMAND_BUFFER, COMMAND_POOL, FENCE, check, count
from vkrt.vk.interruption cimport check_interruption
from vkrt.vk.resource cimport Buffer, Image
from vkrt.vk.pipeline cimport DescriptorPool, Pipeline


cdef int need(void* handle) except -1 nogil:
    """Refuses what was closed: drivers crash on a handle that is null."""
    if handle == NULL:
        with gil:
            raise ValueError("an object of this call is closed")
    return 0


@cython.no_gc_clear
cdef class CommandPool:
    """Where command buffers come from; one thread at a time uses a pool.

    Args:
        device: an open device.
        uploads: for the queue for copies.
    """

    def __cinit__(self, Device device not None, bint uploads=False):
        cdef VkCommandPoolCreateInfo info
        cdef VkCommandPool handle = NULL
        memset(&info, 0, sizeof(info))
        info.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO
        info.flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT
        info.queueFamilyIndex = device.upload_family if uploads else device.queue_family
        device.retain()
        self.device = device
        device.created(device.vk.vkCreateCommandPool(device.handle, &info, NULL, &handle),
                       COMMAND_POOL, b"vkCreateCommandPool")
        self.handle = handle

    def close(self):
        """Destroys the pool; at once, or when its last command buffer is closed."""
        self.closed = True
        if self.children == 0:
            self.destroy()

    cdef void destroy(self) noexcept:
        cdef VkCommandPool handle = self.handle
        self.handle = NULL
        if handle != NULL:
            self.device.vk.vkDestroyCommandPool(self.device.handle, handle, NULL)
            self.device.destroyed(COMMAND_POOL)

    def __dealloc__(self):
        self.destroy()


@cython.no_gc_clear
cdef class CommandBuffer:
    """A recording that can be submitted again and again.

    Args:
        pool: an open pool.
    """

    def __cinit__(self, CommandPool pool not None):
        cdef VkCommandBufferAllocateInfo info
        cdef VkCommandBuffer handle = NULL
        cdef Device device = pool.device
        if pool.closed:
            raise ValueError("the command pool is closed")
        memset(&info, 0, sizeof(info))
        info.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO
        info.commandPool = pool.handle
        info.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY
        info.commandBufferCount = 1
        self.pool = pool
        self.device = device
        check(device.vk.vkAllocateCommandBuffers(device.handle, &info, &handle),
              b"vkAllocateCommandBuffers")
        self.handle = handle
        pool.children += 1
        count(COMMAND_BUFFER, 1)

    cpdef int begin(self, bint one_time) except -1 nogil:
        """Starts recording anew; `one_time` promises a single submission."""
        cdef VkCommandBufferBeginInfo info
        need(self.handle)
        memset(&info, 0, sizeof(info))
        info.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO
        if one_time:
            info.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT
        return check(self.device.vk.vkBeginCommandBuffer(self.handle, &info),
                     b"vkBeginCommandBuffer")

    cpdef int end(self) except -1 nogil:
        """Ends recording."""
        need(self.handle)
        return check(self.device.vk.vkEndCommandBuffer(self.handle), b"vkEndCommandBuffer")

    cdef void bind_pipeline(self, VkPipeline pipeline) noexcept nogil:
        self.device.vk.vkCmdBindPipeline(self.handle, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline)

    cdef void bind_descriptors(self, VkPipelineLayout layout, VkDescriptorSet set) noexcept nogil:
        self.device.vk.vkCmdBindDescriptorSets(self.handle, VK_PIPELINE_BIND_POINT_COMPUTE, layout,
                                               0, 1, &set, 0, NULL)

    cdef void push_constants(self, VkPipelineLayout layout, const void* data,
                             uint32_t size) noexcept nogil:
        self.device.vk.vkCmdPushConstants(self.handle, layout, VK_SHADER_STAGE_COMPUTE_BIT, 0,
                                          size, data)

    cdef void dispatch(self, uint32_t x, uint32_t y, uint32_t z) noexcept nogil:
        self.device.vk.vkCmdDispatch(self.handle, x, y, z)

    cpdef void barrier(self, VkFlags source_stages, VkFlags source_access, VkFlags stages,
                       VkFlags access) noexcept nogil:
        """Between any two stages (VkPipelineStageFlags) and accesses (VkAccessFlags)."""
        cdef VkMemoryBarrier memory
        if self.handle == NULL:
            return
        memset(&memory, 0, sizeof(memory))
        memory.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER
        memory.srcAccessMask = source_access
        memory.dstAccessMask = access
        self.device.vk.vkCmdPipelineBarrier(self.handle, source_stages, stages, 0, 1, &memory, 0,
                                            NULL, 0, NULL)

    cdef int barrier_with_images(self, VkFlags source_stages, VkFlags source_access,
                                 VkFlags stages, VkFlags access, images) except -1:
        """A barrier that in the same command empties images and makes them usable by shaders.

        The change of a layout writes the image's memory. It comes behind everything in the first
        scope, because another tenant of that memory may still be read or written there.
        """
        cdef uint32_t number = len(images)
        cdef uint32_t index
        cdef Image image
        cdef VkMemoryBarrier memory
        cdef VkImageMemoryBarrier* changes
        if number == 0:
            self.barrier(source_stages, source_access, stages, access)
            return 0
        need(self.handle)
        for image in images:
            need(image.handle)
        changes = <VkImageMemoryBarrier*>calloc(number, sizeof(VkImageMemoryBarrier))
        if changes == NULL:
            raise MemoryError
        for index, image in enumerate(images):
            changes[index].sType = VK_STRUCTURE_TYPE_IMAGE_MEMORY_BARRIER
            changes[index].srcAccessMask = source_access
            changes[index].dstAccessMask = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT
            changes[index].oldLayout = VK_IMAGE_LAYOUT_UNDEFINED
            changes[index].newLayout = VK_IMAGE_LAYOUT_GENERAL
            changes[index].srcQueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED
            changes[index].dstQueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED
            changes[index].image = image.handle
            changes[index].subresourceRange.aspectMask = VK_IMAGE_ASPECT_COLOR_BIT
            changes[index].subresourceRange.levelCount = 1
            changes[index].subresourceRange.layerCount = 1
        memset(&memory, 0, sizeof(memory))
        memory.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER
        memory.srcAccessMask = source_access
        memory.dstAccessMask = access
        self.device.vk.vkCmdPipelineBarrier(
            self.handle, source_stages, stages | VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, 0, 1,
            &memory, 0, NULL, number, changes)
        free(changes)
        return 0

    cpdef void device_to_host(self) noexcept nogil:
        """Everything before is seen by the host once the fence is signaled."""
        self.barrier(VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT,
                     VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT,
                     VK_PIPELINE_STAGE_HOST_BIT, VK_ACCESS_HOST_READ_BIT)

    cdef void copy_buffer(self, VkBuffer source, uint64_t source_offset, VkBuffer target,
                          uint64_t target_offset, uint64_t size) noexcept nogil:
        cdef VkBufferCopy region
        region.srcOffset = source_offset
        region.dstOffset = target_offset
        region.size = size
        self.device.vk.vkCmdCopyBuffer(self.handle, source, target, 1, &region)

    cdef void fill_buffer(self, VkBuffer target, uint64_t offset, uint64_t size,
                          uint32_t word) noexcept nogil:
        self.device.vk.vkCmdFillBuffer(self.handle, target, offset, size, word)

    cdef void update_buffer(self, VkBuffer target, uint64_t offset, uint64_t size,
                            const void* data) noexcept nogil:
        self.device.vk.vkCmdUpdateBuffer(self.handle, target, offset, size, data)

    cdef void reset_timestamps(self, VkQueryPool queries, uint32_t number) noexcept nogil:
        self.device.vk.vkCmdResetQueryPool(self.handle, queries, 0, number)

    cdef void write_timestamp(self, VkQueryPool queries, uint32_t index) noexcept nogil:
        self.device.vk.vkCmdWriteTimestamp(self.handle, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT,
                                           queries, index)

    def record_dispatch(self, Pipeline pipeline not None, DescriptorPool sets not None,
                        uint32_t index, groups, bytes push=b""):
        """A dispatch of `groups` (x, y, z) workgroups with set `index` and push constants."""
        x, y, z = groups
        if index >= sets.size:
            raise IndexError(f"set {index} of {sets.size}")
        if <uint32_t>len(push) > pipeline.layout.push_constant_size:
            raise ValueError(f"{len(push)} bytes of push constants for a layout of "
                             f"{pipeline.layout.push_constant_size}")
        need(self.handle)
        need(pipeline.handle)
        need(pipeline.layout.pipeline_layout)
        need(sets.sets)
        self.bind_pipeline(pipeline.handle)
        self.bind_descriptors(pipeline.layout.pipeline_layout, sets.sets[index])
        if push:
            self.push_constants(pipeline.layout.pipeline_layout, <const char*>push, len(push))
        self.dispatch(x, y, z)

    def record_copy(self, Buffer source not None, uint64_t source_offset, Buffer target not None,
                    uint64_t target_offset, uint64_t size):
        """A copy of `size` bytes between buffers."""
        need(self.handle)
        need(source.handle)
        need(target.handle)
        self.copy_buffer(source.handle, source_offset, target.handle, target_offset, size)

    def record_fill(self, Buffer target not None, uint64_t offset, uint64_t size, uint32_t word):
        """Fills a part of a buffer with a 32-bit word; offset and size are multiples of 4."""
        need(self.handle)
        need(target.handle)
        self.fill_buffer(target.handle, offset, size, word)

    def record_image(self, Image image not None):
        """Makes a new image usable by shaders; it holds nothing yet."""
        need(self.handle)
        need(image.handle)
        # Whatever used the memory before has to be done with it: nothing says what that was.
        self.barrier_with_images(
            VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT,
            VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT,
            VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
            VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT, (image,))

    def submit(self, Fence fence not None):
        """Submits what was recorded; the fence is signaled when it is done."""
        with nogil:
            submit(self.device, self, fence)

    def close(self):
        """Frees the command buffer; the device must be done with it."""
        self.destroy()

    cdef void destroy(self) noexcept:
        cdef VkCommandBuffer handle = self.handle
        if handle == NULL:
            return
        self.handle = NULL
        self.device.vk.vkFreeCommandBuffers(self.device.handle, self.pool.handle, 1, &handle)
        self.device.uncount(COMMAND_BUFFER)
        self.pool.children -= 1
        if self.pool.closed and self.pool.children == 0:
            self.pool.destroy()

    def __dealloc__(self):
        self.destroy()


@cython.no_gc_clear
cdef class Fence:
    """Tells the host when a submission is done.

    Args:
        device: an open device.
    """

    def __cinit__(self, Device device not None):
        cdef VkFenceCreateInfo info
        cdef VkFence handle = NULL
        memset(&info, 0, sizeof(info))
        info.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO
        device.retain()
        self.device = device
        device.created(device.vk.vkCreateFence(device.handle, &info, NULL, &handle), FENCE,
                       b"vkCreateFence")
        self.handle = handle

    def wait(self, seconds=None):
        """Waits for the submission, `seconds` at most; whether it is done.

        Ctrl-C interrupts the wait, not the device.

        Raises:
            DeviceLostError: the device was lost.
        """
        cdef uint64_t slice = 100_000_000  # so often signals are looked at, in nanoseconds
        cdef uint64_t left = 0
        cdef uint64_t now
        cdef bint forever = seconds is None
        cdef int done
        if not forever:
            left = <uint64_t>(max(seconds, 0) * 1e9)
        while True:
            now = slice if forever or left > slice else left
            with nogil:
                done = wait(self, now)
            check_interruption()
            if done:
                return True
            left -= 0 if forever else now
            if not forever and left == 0:
                return False

    def close(self):
        """Destroys the fence; no submission may be waiting to signal it."""
        self.destroy()

    cdef void destroy(self) noexcept:
        cdef VkFence handle = self.handle
        if handle == NULL:
            return
        self.handle = NULL
        self.device.vk.vkDestroyFence(self.device.handle, handle, NULL)
        self.device.destroyed(FENCE)

    def __dealloc__(self):
        self.destroy()


cdef int submit(Device device, CommandBuffer commands, Fence fence) except -1 nogil:
    cdef VkSubmitInfo info
    need(commands.handle)
    need(fence.handle)
    memset(&info, 0, sizeof(info))
    info.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO
    info.commandBufferCount = 1
    info.pCommandBuffers = &commands.handle
    check(device.vk.vkResetFences(device.handle, 1, &fence.handle), b"vkResetFences")
    return check(<VkResult>device.submit(device.queue, &info, fence.handle), b"vkQueueSubmit")


cdef int wait(Fence fence, uint64_t timeout) except -1 nogil:
    need(fence.handle)
    return wait_for(fence.device, fence.handle, timeout)


cdef int wait_for(Device device, VkFence fence, uint64_t timeout) except -1 nogil:
    cdef int failures = 0
    cdef int result = VK_SUCCESS
    while True:
        result = device.vk.vkWaitForFences(device.handle, 1, &fence, 1, timeout)
        if result >= 0:
            return result == VK_SUCCESS
        device.wait_failed(result, &failures, b"vkWaitForFences")
