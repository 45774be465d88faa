# cython: language_level=3

from vkrt.runtime.resources cimport Resources
from vkrt.vk.batch cimport SemaphoreList
from vkrt.vk.command cimport CommandBuffer, CommandPool, Fence
from vkrt.vk.device cimport Device


cdef class Handover:
    cdef Device device
    cdef object lending
    cdef CommandBuffer copy_in
    cdef CommandBuffer copy_out

    # Puts the buffers that are used in place where their storages are.
    cdef int place(self, Resources resources) except -1
    # Records the copies, if there are any.
    cdef int record(self, CommandPool pool, Resources resources) except -1
    # What comes before a run, and what comes behind it; None for no semaphores.
    cdef int begin(self, SemaphoreList waits) except -1
    cdef int end(self, SemaphoreList signals, Fence fence) except -1
