"""Timeline semaphores: a number that only grows, which the device and the host wait for and set.
They order submissions, uploads and the host."""

from libc.stdint cimport uint64_t

from vkrt.core.command cimport CommandBuffer
from vkrt.core.device cimport Device
from vkrt.core.error cimport Error
from vkrt.core.fence cimport Fence
from vkrt.core.vulkan cimport VkSemaphore

cdef struct TimelineSemaphore:
    Device* device
    VkSemaphore handle
    # Queues whose submissions have waited for it or raised it
    bint on_compute
    bint on_upload

cdef extern nogil:
    # VKRT_ERROR_UNSUPPORTED where the device has none.
    int make_timeline "vkrt_make_timeline"(Device* device, TimelineSemaphore* semaphore,
                                           Error* error)
    # No submission may still use it. Where the host's lock of the queue cannot be taken, nobody
    # hears of that.
    void close_timeline "vkrt_close_timeline"(TimelineSemaphore* semaphore)
    # Whether the value was reached within so many nanoseconds. Fails only where the device is done
    # with what it was given, because it is lost, or was given up.
    int wait_for_value "vkrt_wait_for_value"(const TimelineSemaphore* semaphore, uint64_t value,
                                             uint64_t timeout, bint* reached, Error* error)
    # Waits until the value is reached.
    int finish_value "vkrt_finish_value"(const TimelineSemaphore* semaphore, uint64_t value,
                                         Error* error)
    # Brings it to a value above the one it has.
    int raise_timeline "vkrt_raise_timeline"(const TimelineSemaphore* semaphore, uint64_t value,
                                             Error* error)
    # Submits commands that begin once `before` has reached its value (NULL: at once) and bring
    # `after` to its value when they are done; on the queue for copies or on the compute queue. Then
    # `fence`, if any, is signaled too.
    int submit_in_order "vkrt_submit_in_order"(const CommandBuffer* commands,
                                               TimelineSemaphore* before, uint64_t before_value,
                                               TimelineSemaphore* after, uint64_t after_value,
                                               bint upload, const Fence* fence, Error* error)
