# cython: language_level=3
"""Timeline semaphores: a number that only grows, which the device and the host wait for and set."""

cimport cython
from cpython.exc cimport PyErr_Occurred, PyErr_WriteUnraisable
from libc.stdint cimport uint64_t

from vkrt.core.error cimport Error
from vkrt.core.semaphore cimport (
    close_timeline, finish_value, make_timeline, raise_timeline, read_timeline, wait_for_value,
)
from vkrt.core.semaphore cimport submit_in_order as submit_core_in_order
from vkrt.vk.check cimport check_status
from vkrt.vk.command cimport CommandBuffer, Fence
from vkrt.vk.device cimport Device


@cython.no_gc_clear
cdef class TimelineSemaphore:
    """A counter that submissions raise and that host and device wait for.

    Args:
        device: an open device.

    Raises:
        UnsupportedError: the device has no timeline semaphores.
    """

    def __cinit__(self, Device device not None):
        cdef Error error
        self.device = device
        check_status(make_timeline(&device.core, &self.core, &error), &error)

    @property
    def value(self):
        """What has been reached."""
        cdef Error error
        cdef uint64_t now = 0
        check_status(read_timeline(&self.core, &now, &error), &error)
        return now

    def wait(self, uint64_t value, seconds=10.0):
        """Whether `value` is reached within so many seconds.

        Raises:
            DeviceLostError: the device was lost.
        """
        cdef uint64_t timeout = <uint64_t>(max(seconds, 0) * 1e9)
        cdef int done
        with nogil:
            done = self.reached(value, timeout)
        return bool(done)

    cdef int reached(self, uint64_t value, uint64_t timeout) except -1 nogil:
        cdef Error error
        cdef bint reached = False
        check_status(wait_for_value(&self.core, value, timeout, &reached, &error), &error)
        return reached

    cdef int finish(self, uint64_t value) except -1 nogil:
        cdef Error error
        return check_status(finish_value(&self.core, value, &error), &error)

    cdef int raise_to(self, uint64_t value) except -1 nogil:
        cdef Error error
        return check_status(raise_timeline(&self.core, value, &error), &error)

    def close(self):
        """Destroys it; no submission may still use it."""
        self.destroy()

    cdef void destroy(self) noexcept:
        with nogil:
            close_timeline(&self.core)
        if PyErr_Occurred() != NULL:  # by the host's lock
            PyErr_WriteUnraisable("TimelineSemaphore.close")

    def __dealloc__(self):
        self.destroy()


cdef int submit_in_order(CommandBuffer commands, TimelineSemaphore before, uint64_t before_value,
                         TimelineSemaphore after, uint64_t after_value, bint upload,
                         Fence fence) except -1 nogil:
    cdef Error error
    return check_status(
        submit_core_in_order(
            &commands.core, &before.core if before is not None else NULL, before_value,
            &after.core, after_value, upload, &fence.core if fence is not None else NULL, &error),
        &error)
