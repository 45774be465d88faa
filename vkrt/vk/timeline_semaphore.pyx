# cython: language_level=3
"""Timeline semaphores: a number that only grows, which the device and the host wait for and set."""

cimport cython
from cpython.pythread cimport PyThread_acquire_lock, PyThread_release_lock, WAIT_LOCK
from libc.stdint cimport uint64_t
from libc.string cimport memset

from vkrt.vk.api cimport *
from vkrt.vk.check cimport SEMAPHORE, check
from vkrt.vk.command cimport CommandBuffer, Fence, wait_for
from vkrt.vk.device cimport Device

from vkrt.errors import UnsupportedError, VulkanError

# Nanoseconds of a wait at a time
cdef uint64_t SLICE = 100_000_000
# Nanoseconds; other programs of the device may be at work.
cdef uint64_t DRAINED_WITHIN = 10_000_000_000


@cython.no_gc_clear
cdef class TimelineSemaphore:
    """A counter that submissions raise and that host and device wait for.

    Args:
        device: an open device.

    Raises:
        UnsupportedError: the device has no timeline semaphores.
    """

    def __cinit__(self, Device device not None):
        cdef VkSemaphoreTypeCreateInfo kind
        cdef VkSemaphoreCreateInfo info
        cdef VkSemaphore handle = NULL
        if "timeline" not in device.features or device.vk.vkWaitSemaphores == NULL:
            raise UnsupportedError(f"{device.info.name} has no timeline semaphores (the feature "
                                   "timelineSemaphore of Vulkan 1.2 or VK_KHR_timeline_semaphore; "
                                   "of an adopted device among the `features`)")
        memset(&kind, 0, sizeof(kind))
        memset(&info, 0, sizeof(info))
        kind.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO
        kind.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE
        info.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO
        info.pNext = &kind
        device.retain()
        self.device = device
        device.created(device.vk.vkCreateSemaphore(device.handle, &info, NULL, &handle),
                       SEMAPHORE, b"vkCreateSemaphore")
        self.handle = handle

    @property
    def value(self):
        """What has been reached."""
        cdef uint64_t now = 0
        if self.handle == NULL:
            raise ValueError("the timeline semaphore is closed")
        check(self.device.vk.vkGetSemaphoreCounterValue(self.device.handle, self.handle, &now),
              b"vkGetSemaphoreCounterValue")
        return now

    def wait(self, uint64_t value, seconds=10.0):
        """Whether `value` is reached within so many seconds.

        Raises:
            DeviceLostError: the device was lost.
        """
        cdef uint64_t timeout = <uint64_t>(max(seconds, 0) * 1e9)
        cdef int done
        with nogil:
            done = self.reached(value, timeout)
        return bool(done)

    cdef int reached(self, uint64_t value, uint64_t timeout) except -1 nogil:
        cdef VkSemaphoreWaitInfo info
        cdef int failures = 0
        cdef int result = VK_SUCCESS
        if self.handle == NULL:
            with gil:
                raise ValueError("the timeline semaphore is closed")
        memset(&info, 0, sizeof(info))
        info.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO
        info.semaphoreCount = 1
        info.pSemaphores = &self.handle
        info.pValues = &value
        while True:
            result = self.device.vk.vkWaitSemaphores(self.device.handle, &info, timeout)
            if result >= 0:
                return result == VK_SUCCESS
            self.device.wait_failed(result, &failures, b"vkWaitSemaphores")

    cdef int finish(self, uint64_t value) except -1 nogil:
        # In slices: another thread may give the device up, and this wait would have no end.
        while not self.reached(value, SLICE):
            pass
        return 0

    cdef int raise_to(self, uint64_t value) except -1 nogil:
        cdef VkSemaphoreSignalInfo info
        if self.handle == NULL:
            with gil:
                raise ValueError("the timeline semaphore is closed")
        memset(&info, 0, sizeof(info))
        info.sType = VK_STRUCTURE_TYPE_SEMAPHORE_SIGNAL_INFO
        info.semaphore = self.handle
        info.value = value
        return check(signal(self.device, &info), b"vkSignalSemaphore")

    def close(self):
        """Destroys it; no submission may still use it."""
        self.destroy()

    cdef void destroy(self) noexcept:
        cdef VkSemaphore handle = self.handle
        if handle == NULL:
            return
        self.handle = NULL
        if self.on_compute:
            drain(self.device, self.device.queue)
        if self.on_upload:
            drain(self.device, self.device.upload_queue)
        self.device.vk.vkDestroySemaphore(self.device.handle, handle, NULL)
        self.device.destroyed(SEMAPHORE)

    def __dealloc__(self):
        self.destroy()


cdef VkResult signal(Device device, const VkSemaphoreSignalInfo* info) noexcept nogil:
    """Vulkan lets one thread signal while another one submits. Validation layers that follow
    timeline semaphores from submission to submission corrupt their own memory then, until March
    2026 (KhronosGroup/Vulkan-ValidationLayers, mended by 11931): under validation one waits."""
    cdef VkResult result
    # In a forked child a thread of the parent may have held the lock.
    cdef bint alone = device.instance.messenger != NULL and not device.calls.inherited
    if alone:
        PyThread_acquire_lock(device.queue_lock, WAIT_LOCK)
    result = device.vk.vkSignalSemaphore(device.handle, info)
    if alone:
        PyThread_release_lock(device.queue_lock)
    return result


cdef inline void note_use(TimelineSemaphore semaphore, bint upload) noexcept nogil:
    if upload:
        semaphore.on_upload = True
    else:
        semaphore.on_compute = True


cdef void drain(Device device, VkQueue queue) noexcept:
    """Waits until the driver has turned to a later submission than those of before.

    Mesa up to 23 at least signals a submission's fence first, and then looks at its semaphores
    once more, in a thread of its own: a semaphore that is destroyed when the fence is signaled is
    memory that this thread still reads, and the queue may stand still for good. A submission of
    nothing comes after all that.
    """
    cdef VkFenceCreateInfo info
    cdef VkSubmitInfo nothing
    cdef VkFence fence = NULL
    cdef int result
    if device.calls.inherited:
        return  # the queue is the parent's
    memset(&info, 0, sizeof(info))
    info.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO
    # No child of the device, which may be closed already: the semaphore keeps it there.
    if <int>device.vk.vkCreateFence(device.handle, &info, NULL, &fence) < 0:
        return  # A device that failed is done with everything.
    memset(&nothing, 0, sizeof(nothing))
    nothing.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO
    try:
        with nogil:
            result = device.submit(queue, &nothing, fence)
            if result == VK_SUCCESS:
                wait_for(device, fence, DRAINED_WITHIN)
    except VulkanError:
        pass  # nothing is destroyed on a device that was given up, and one that is lost is done
    finally:  # an error of the host's lock is reported
        device.vk.vkDestroyFence(device.handle, fence, NULL)


cdef int submit_in_order(Device device, CommandBuffer commands, TimelineSemaphore before,
                         uint64_t before_value, TimelineSemaphore after, uint64_t after_value,
                         bint upload, Fence fence) except -1 nogil:
    cdef VkTimelineSemaphoreSubmitInfo values
    cdef VkSubmitInfo info
    cdef VkFlags stage = VK_PIPELINE_STAGE_ALL_COMMANDS_BIT
    cdef VkFence signaled = NULL
    if (commands.handle == NULL or after.handle == NULL
            or fence is not None and fence.handle == NULL):
        with gil:
            raise ValueError("an object of this submission is closed")
    memset(&values, 0, sizeof(values))
    memset(&info, 0, sizeof(info))
    values.sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO
    values.signalSemaphoreValueCount = 1
    values.pSignalSemaphoreValues = &after_value
    info.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO
    info.pNext = &values
    if before is not None:
        values.waitSemaphoreValueCount = 1
        values.pWaitSemaphoreValues = &before_value
        info.waitSemaphoreCount = 1
        info.pWaitSemaphores = &before.handle
        info.pWaitDstStageMask = &stage
    info.commandBufferCount = 1
    info.pCommandBuffers = &commands.handle
    info.signalSemaphoreCount = 1
    info.pSignalSemaphores = &after.handle
    note_use(after, upload)
    if before is not None:
        note_use(before, upload)
    if fence is not None:
        signaled = fence.handle
        check(device.vk.vkResetFences(device.handle, 1, &signaled), b"vkResetFences")
    return check(<VkResult>device.submit(device.upload_queue if upload else device.queue, &info,
                                         signaled), b"vkQueueSubmit")
