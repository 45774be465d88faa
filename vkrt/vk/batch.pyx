"""Semaphores of the host's, which runs wait for and signal."""

cimport cython
from libc.stdint cimport uint32_t, uint64_t

from vkrt.core.batch cimport free_semaphore_list, make_semaphore_list, put_semaphore
from vkrt.core.error cimport Error
from vkrt.vk.check cimport check_status
from vkrt.vk.device cimport Device


@cython.no_gc_clear
cdef class SemaphoreList:
    """Semaphores of the host's, in the form that a submission takes them.

    Args:
        device: an open device, of which they are.
        semaphores: `vkrt.executable.external_buffers.Semaphore`s.

    Raises:
        UnsupportedError: one has a value, and the device has no timeline semaphores, or was adopted
            without the feature being named.
    """

    def __cinit__(self, Device device not None, semaphores):
        cdef Error error
        cdef uint32_t index
        cdef uint64_t value
        check_status(make_semaphore_list(len(semaphores), &self.core, &error), &error)
        for index, semaphore in enumerate(semaphores):
            value = semaphore.value or 0
            check_status(
                put_semaphore(&device.core, &self.core, index, semaphore.handle,
                              &value if semaphore.value is not None else NULL, &error), &error)

    def __dealloc__(self):
        free_semaphore_list(&self.core)
