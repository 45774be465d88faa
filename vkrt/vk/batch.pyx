# cython: language_level=3
"""Submissions that wait for semaphores of the host's and signal them."""

cimport cython
from libc.stdint cimport uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from vkrt.vk.api cimport *
from vkrt.vk.check cimport check
from vkrt.vk.command cimport CommandBuffer, Fence, need
from vkrt.vk.device cimport Device

from vkrt.errors import UnsupportedError


@cython.no_gc_clear
cdef class SemaphoreList:
    """Semaphores of the host's, in the form that a submission takes them.

    Args:
        device: an open device, of which they are.
        semaphores: `vkrt.executable.lending.Semaphore`s.

    Raises:
        UnsupportedError: one has a value, and the device has no timeline semaphores, or was adopted
            without the feature being named.
    """

    def __cinit__(self, Device device not None, semaphores):
        cdef uint32_t index
        self.size = len(semaphores)
        self.handles = <VkSemaphore*>calloc(max(self.size, 1), sizeof(VkSemaphore))
        self.values = <uint64_t*>calloc(max(self.size, 1), sizeof(uint64_t))
        self.stages = <VkFlags*>calloc(max(self.size, 1), sizeof(VkFlags))
        if self.handles == NULL or self.values == NULL or self.stages == NULL:
            raise MemoryError
        for index, semaphore in enumerate(semaphores):
            self.handles[index] = <VkSemaphore><size_t>semaphore.handle
            self.stages[index] = VK_PIPELINE_STAGE_ALL_COMMANDS_BIT
            if semaphore.value is not None:
                self.values[index] = semaphore.value
                self.has_timeline = True
        if self.has_timeline and "timeline" not in device.features:
            raise UnsupportedError(f"{device.info.name}: a semaphore with a value takes timeline "
                                   "semaphores (the feature timelineSemaphore; of an adopted "
                                   "device among the `features`)")

    def __dealloc__(self):
        free(self.handles)
        free(self.values)
        free(self.stages)


cdef int submit_batch(Device device, CommandBuffer commands, SemaphoreList waits,
                      SemaphoreList signals, Fence fence) except -1 nogil:
    cdef VkTimelineSemaphoreSubmitInfo values
    cdef VkSubmitInfo info
    cdef VkFence signaled = NULL
    memset(&values, 0, sizeof(values))
    memset(&info, 0, sizeof(info))
    info.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO
    values.sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO
    if commands is not None:
        need(commands.handle)
        info.commandBufferCount = 1
        info.pCommandBuffers = &commands.handle
    if waits is not None:
        info.waitSemaphoreCount = waits.size
        info.pWaitSemaphores = waits.handles
        info.pWaitDstStageMask = waits.stages
        values.waitSemaphoreValueCount = waits.size
        values.pWaitSemaphoreValues = waits.values
    if signals is not None:
        info.signalSemaphoreCount = signals.size
        info.pSignalSemaphores = signals.handles
        values.signalSemaphoreValueCount = signals.size
        values.pSignalSemaphoreValues = signals.values
    # Where there are none, the extension that brings the struct may not be there either.
    if (waits is not None and waits.has_timeline) or (
            signals is not None and signals.has_timeline):
        info.pNext = &values
    if fence is not None:
        need(fence.handle)
        signaled = fence.handle
        check(device.vk.vkResetFences(device.handle, 1, &signaled), b"vkResetFences")
    return check(<VkResult>device.submit(device.queue, &info, signaled), b"vkQueueSubmit")
