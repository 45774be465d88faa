# cython: language_level=3

from vkrt.vk.command cimport CommandBuffer, Fence
from vkrt.vk.device cimport Device


cdef class Submission:
    cdef Device device
    cdef Fence fence
    # Whether the device may still be at work on what was submitted last
    cdef readonly bint pending

    # Submits and waits until the device is done. A signal's handler that raises ends the wait, not
    # the work.
    cdef int run(self, CommandBuffer commands) except -1
    # The same, but nothing is raised before the device is done.
    cdef int run_to_end(self, CommandBuffer commands) except -1
    # Waits for what is pending.
    cdef int settle(self) except -1
    # Whether that would take no time.
    cdef bint is_done(self) except -1


# Holds what the device may still be at work on, until it is released again. At exit all of it is
# waited for.
cdef int keep(graph) except -1
cdef int release(graph) except -1
