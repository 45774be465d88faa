"""Semaphores of the host's, which runs wait for and signal."""

cimport cython

from vkrt.core.batch cimport SemaphoreList as CoreSemaphoreList


@cython.final
cdef class SemaphoreList:
    cdef CoreSemaphoreList core
