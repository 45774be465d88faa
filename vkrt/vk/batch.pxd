# cython: language_level=3
"""Submissions that wait for semaphores of the host's and signal them."""

cimport cython

from vkrt.core.batch cimport SemaphoreList as CoreSemaphoreList
from vkrt.vk.command cimport CommandBuffer, Fence
from vkrt.vk.device cimport Device


@cython.final
cdef class SemaphoreList:
    cdef CoreSemaphoreList core


# The core's function of this name on the compute queue, with exceptions; any of them may be None.
cdef int submit_batch(Device device, CommandBuffer commands, SemaphoreList waits,
                      SemaphoreList signals, Fence fence) except -1 nogil
