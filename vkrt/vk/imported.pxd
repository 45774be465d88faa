"""Host memory that a device reads in place."""

cimport cython

from vkrt.core.imported cimport HostImport as CoreHostImport
from vkrt.vk.device cimport Device
from vkrt.vk.resource cimport Buffer


@cython.final
cdef class HostImport:
    cdef Device device
    cdef object owner
    cdef CoreHostImport core
    # All of the memory; the core's buffer, which it adopts
    cdef readonly Buffer buffer
