# cython: language_level=3
"""Counters on the device's clock of events: what orders submissions, uploads and the host."""

cimport cython
from libc.stdint cimport uint64_t

from vkrt.vk.api cimport VkSemaphore
from vkrt.vk.command cimport CommandBuffer, Fence
from vkrt.vk.device cimport Device


@cython.final
cdef class TimelineSemaphore:
    cdef Device device
    cdef VkSemaphore handle
    # Queues whose submissions have waited for it or raised it
    cdef bint on_compute
    cdef bint on_upload

    # Whether the value was reached within so many nanoseconds. Raises only where the device is done
    # with what it was given, because it is lost, or was given up.
    cdef int reached(self, uint64_t value, uint64_t timeout) except -1 nogil
    # Waits until the value is reached.
    cdef int finish(self, uint64_t value) except -1 nogil
    # Brings it to a value above the one it has.
    cdef int raise_to(self, uint64_t value) except -1 nogil
    cdef void destroy(self) noexcept


# Submits commands that begin once `before` has reached its value (None: at once) and bring `after`
# to its value when they are done; on the queue for copies or on the compute queue. Then `fence`, if
# any, is signaled too.
cdef int submit_in_order(Device device, CommandBuffer commands, TimelineSemaphore before,
                         uint64_t before_value, TimelineSemaphore after, uint64_t after_value,
                         bint upload, Fence fence) except -1 nogil
