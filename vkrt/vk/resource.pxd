"""Buffers."""

cimport cython

from vkrt.core.resource cimport Buffer as CoreBuffer
from vkrt.vk.device cimport Device


@cython.final
cdef class Buffer:
    cdef Device device
    cdef CoreBuffer core
