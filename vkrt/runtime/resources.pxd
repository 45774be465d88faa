# cython: language_level=3

from vkrt.vk.device cimport Device
from vkrt.vk.resource cimport BufferView


cdef class Resources:
    cdef Device device
    cdef readonly list handles
    cdef dict views
    cdef object storages

    cdef BufferView texel_view(self, operand)
    cdef void* host_address(self, operand) except NULL
