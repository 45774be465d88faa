# cython: language_level=3

from vkrt.vk.api cimport VkDevice, VkResult

ctypedef VkResult (*WaitIdle)(VkDevice) noexcept nogil

# Lets the end of the process wait until a device is idle that nobody else waits for any more.
#   lock: of its queues
#   owner: of the handle and of the lock
cdef int watch_until_idle(VkDevice device, WaitIdle wait, void* lock, owner) except -1
