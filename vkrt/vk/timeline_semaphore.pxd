# cython: language_level=3
"""Counters on the device's clock of events: what orders submissions, uploads and the host."""

cimport cython
from libc.stdint cimport uint64_t

from vkrt.core.semaphore cimport TimelineSemaphore as CoreTimelineSemaphore
from vkrt.vk.command cimport CommandBuffer, Fence
from vkrt.vk.device cimport Device


@cython.final
cdef class TimelineSemaphore:
    cdef Device device
    cdef CoreTimelineSemaphore core

    # The core's functions `wait_for_value`, `finish_value` and `raise_timeline`, with exceptions
    cdef int reached(self, uint64_t value, uint64_t timeout) except -1 nogil
    cdef int finish(self, uint64_t value) except -1 nogil
    cdef int raise_to(self, uint64_t value) except -1 nogil
    cdef void destroy(self) noexcept


# The core's function of this name, with exceptions; `before` and `fence` may be None.
cdef int submit_in_order(CommandBuffer commands, TimelineSemaphore before, uint64_t before_value,
                         TimelineSemaphore after, uint64_t after_value, bint upload,
                         Fence fence) except -1 nogil
