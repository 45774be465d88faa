# cython: language_level=3
"""Command buffers and fences: what an inference consists of on the device.

What records thousands of dispatches calls the core's functions; the `record_*` methods wrap them
for Python.
"""

cimport cython
from libc.stdint cimport uint32_t, uint64_t
from libc.stdlib cimport calloc, free

from vkrt.core.command cimport (
    begin_commands, bind_descriptors, bind_pipeline, close_command_buffer, close_command_pool,
    copy_buffer, device_to_host, dispatch, end_commands, fill_buffer, make_command_buffer,
    make_command_pool, push_constants,
)
from vkrt.core.command cimport barrier as record_barrier
from vkrt.core.command cimport barrier_with_images as record_barrier_with_images
from vkrt.core.error cimport Error, need
from vkrt.core.fence cimport (
    WITHOUT_END, close_fence, make_fence, wait_and_poll, wait_for_fence,
)
from vkrt.core.fence cimport submit as submit_commands
from vkrt.core.vulkan cimport *
from vkrt.vk.check cimport check_status
from vkrt.vk.interruption cimport check_interruption, poll_interruption
from vkrt.vk.pipeline cimport DescriptorPool, Pipeline
from vkrt.vk.resource cimport Buffer, Image


cdef int check_open(const void* handle) except -1 nogil:
    cdef Error error
    return check_status(need(handle, &error), &error)


@cython.no_gc_clear
cdef class CommandPool:
    """Where command buffers come from; one thread at a time uses a pool.

    Args:
        device: an open device.
        uploads: for the queue for copies.
    """

    def __cinit__(self, Device device not None, bint uploads=False):
        cdef Error error
        self.device = device
        check_status(make_command_pool(&device.core, uploads, &self.core, &error), &error)

    def close(self):
        """Destroys the pool; at once, or when its last command buffer is closed."""
        close_command_pool(&self.core)

    def __dealloc__(self):
        close_command_pool(&self.core)


@cython.no_gc_clear
cdef class CommandBuffer:
    """A recording that can be submitted again and again.

    Args:
        pool: an open pool.
    """

    def __cinit__(self, CommandPool pool not None):
        cdef Error error
        self.pool = pool
        self.device = pool.device
        check_status(make_command_buffer(&pool.core, &self.core, &error), &error)

    cpdef int begin(self, bint one_time) except -1 nogil:
        """Starts recording anew; `one_time` promises a single submission."""
        cdef Error error
        return check_status(begin_commands(&self.core, one_time, &error), &error)

    cpdef int end(self) except -1 nogil:
        """Ends recording."""
        cdef Error error
        return check_status(end_commands(&self.core, &error), &error)

    cpdef void barrier(self, VkFlags source_stages, VkFlags source_access, VkFlags stages,
                       VkFlags access) noexcept nogil:
        """Between any two stages (VkPipelineStageFlags) and accesses (VkAccessFlags)."""
        if self.core.handle != NULL:
            record_barrier(&self.core, source_stages, source_access, stages, access)

    cdef int barrier_with_images(self, VkFlags source_stages, VkFlags source_access,
                                 VkFlags stages, VkFlags access, images) except -1:
        cdef Error error
        cdef Image image
        cdef uint32_t number = len(images)
        cdef uint32_t index
        cdef VkImage* handles
        check_open(self.core.handle)
        for image in images:
            check_open(image.core.handle)
        handles = <VkImage*>calloc(number + 1, sizeof(VkImage))
        if handles == NULL:
            raise MemoryError
        for index, image in enumerate(images):
            handles[index] = image.core.handle
        try:
            return check_status(
                record_barrier_with_images(&self.core, source_stages, source_access, stages,
                                           access, handles, number, &error), &error)
        finally:
            free(handles)

    def device_to_host(self):
        """Everything before is seen by the host once the fence is signaled."""
        check_open(self.core.handle)
        device_to_host(&self.core)

    def record_dispatch(self, Pipeline pipeline not None, DescriptorPool sets not None,
                        uint32_t index, groups, bytes push=b""):
        """A dispatch of `groups` (x, y, z) workgroups with set `index` and push constants."""
        x, y, z = groups
        if index >= sets.core.size:
            raise IndexError(f"set {index} of {sets.core.size}")
        if <uint32_t>len(push) > pipeline.layout.core.push_constant_size:
            raise ValueError(f"{len(push)} bytes of push constants for a layout of "
                             f"{pipeline.layout.core.push_constant_size}")
        check_open(self.core.handle)
        check_open(pipeline.core.handle)
        check_open(pipeline.layout.core.pipeline_layout)
        bind_pipeline(&self.core, pipeline.core.handle)
        bind_descriptors(&self.core, pipeline.layout.core.pipeline_layout, sets.core.sets[index])
        if push:
            push_constants(&self.core, pipeline.layout.core.pipeline_layout, <const char*>push,
                           len(push))
        dispatch(&self.core, x, y, z)

    def record_copy(self, Buffer source not None, uint64_t source_offset, Buffer target not None,
                    uint64_t target_offset, uint64_t size):
        """A copy of `size` bytes between buffers."""
        check_open(self.core.handle)
        check_open(source.core.handle)
        check_open(target.core.handle)
        copy_buffer(&self.core, source.core.handle, source_offset, target.core.handle,
                    target_offset, size)

    def record_fill(self, Buffer target not None, uint64_t offset, uint64_t size, uint32_t word):
        """Fills a part of a buffer with a 32-bit word; offset and size are multiples of 4."""
        check_open(self.core.handle)
        check_open(target.core.handle)
        fill_buffer(&self.core, target.core.handle, offset, size, word)

    def record_image(self, Image image not None):
        """Makes a new image usable by shaders; it holds nothing yet."""
        # Whatever used the memory before has to be done with it: nothing says what that was.
        self.barrier_with_images(
            VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT,
            VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT,
            VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
            VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT, (image,))

    def submit(self, Fence fence not None):
        """Submits what was recorded; the fence is signaled when it is done."""
        with nogil:
            submit(self, fence)

    def close(self):
        """Frees the command buffer; the device must be done with it."""
        close_command_buffer(&self.core)

    def __dealloc__(self):
        close_command_buffer(&self.core)


@cython.no_gc_clear
cdef class Fence:
    """Tells the host when a submission is done.

    Args:
        device: an open device.
    """

    def __cinit__(self, Device device not None):
        cdef Error error
        self.device = device
        check_status(make_fence(&device.core, &self.core, &error), &error)

    def wait(self, seconds=None):
        """Waits for the submission, `seconds` at most; whether it is done.

        Ctrl-C interrupts the wait, not the device.

        Raises:
            DeviceLostError: the device was lost.
        """
        cdef Error error
        cdef uint64_t timeout = WITHOUT_END
        cdef bint done = False
        cdef int status
        if seconds is not None:
            timeout = <uint64_t>(max(seconds, 0) * 1e9)
        with nogil:
            status = wait_and_poll(&self.core, timeout, poll_interruption, NULL, &done, &error)
        check_status(status, &error)
        check_interruption()
        return bool(done)

    def close(self):
        """Destroys the fence; no submission may be waiting to signal it."""
        close_fence(&self.core)

    def __dealloc__(self):
        close_fence(&self.core)


cdef int submit(CommandBuffer commands, Fence fence) except -1 nogil:
    cdef Error error
    return check_status(submit_commands(&commands.core, &fence.core, &error), &error)


cdef int wait(Fence fence, uint64_t timeout) except -1 nogil:
    cdef Error error
    cdef bint done = False
    check_status(wait_for_fence(&fence.core, timeout, &done, &error), &error)
    return done
