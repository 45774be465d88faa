# cython: language_level=3

from vkrt.vk.command cimport Fence, TimestampQueries
from vkrt.vk.device cimport Device


cdef class HostClock:
    cdef object run_kernel
    cdef list calls

    cdef list submit_each(self, Device device, Fence fence, list sections)


cdef list device_times(Device device, TimestampQueries queries, list on_host)
