# cython: language_level=3

from vkrt.vk.device cimport Device
from vkrt.vk.pipeline cimport Pipeline


cdef class Pipelines:
    cdef Device device
    cdef dict modules
    cdef dict layouts
    cdef dict pipelines

    cdef Pipeline get(self, shader, params, int local_size, bint specialize)
