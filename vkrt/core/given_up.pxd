from vkrt.core.threads cimport pthread_mutex_t
from vkrt.core.vulkan cimport VkDevice, VkResult

ctypedef VkResult (*WaitIdle)(VkDevice) noexcept nogil

cdef extern nogil:
    # Lets `wait_for_given_up` wait until a device is idle that nobody else waits for any more.
    #   lock: of its queues; it is never freed
    void watch_until_idle "vkrt_watch_until_idle"(VkDevice device, WaitIdle wait,
                                                  pthread_mutex_t* lock)
    # Five seconds at most; to be called at the end of the process.
    void wait_for_given_up "vkrt_wait_for_given_up"()
