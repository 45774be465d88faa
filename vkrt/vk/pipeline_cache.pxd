# cython: language_level=3

from vkrt.vk.device cimport Device


cdef int open_cache(Device device) except -1
