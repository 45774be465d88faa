# cython: language_level=3

from vkrt.runtime.submission cimport Submission
from vkrt.vk.device cimport Device
from vkrt.vk.timestamps cimport TimestampQueries


cdef class HostClock:
    cdef object run_kernel
    cdef list calls

    cdef list submit_each(self, Submission submission, list sections)


cdef list device_times(Device device, TimestampQueries queries, list on_host)

cdef list on_one_line(double start, list calls, list times)
