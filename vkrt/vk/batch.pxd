# cython: language_level=3
"""Submissions that wait for semaphores of the host's and signal them."""

cimport cython
from libc.stdint cimport uint32_t, uint64_t

from vkrt.vk.api cimport VkFlags, VkSemaphore
from vkrt.vk.command cimport CommandBuffer, Fence
from vkrt.vk.device cimport Device


@cython.final
cdef class SemaphoreList:
    cdef uint32_t size
    cdef VkSemaphore* handles
    # Of timeline semaphores; those of binary ones are not looked at.
    cdef uint64_t* values
    cdef VkFlags* stages
    cdef bint has_timeline


# Submits commands (None: nothing) to the compute queue, which begin once the first semaphores are
# signaled and signal the others when they and all submissions of before are done. Then `fence`,
# if any, is signaled too.
cdef int submit_batch(Device device, CommandBuffer commands, SemaphoreList waits,
                      SemaphoreList signals, Fence fence) except -1 nogil
