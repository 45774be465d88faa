# cython: language_level=3
"""Host memory that a device reads in place."""

cimport cython
from libc.stdint cimport uint32_t, uint64_t

from vkrt.vk.api cimport VkDeviceMemory
from vkrt.vk.device cimport Device
from vkrt.vk.resource cimport Buffer


@cython.final
cdef class HostImport:
    cdef Device device
    cdef object owner
    cdef VkDeviceMemory memory
    # All of the memory
    cdef readonly Buffer buffer
    cdef readonly uint64_t size

    cdef int bind(self, size_t address, uint32_t usage) except -1
    cdef void destroy(self) noexcept
