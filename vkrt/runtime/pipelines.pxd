# cython: language_level=3

from vkrt.vk.device cimport Device
from vkrt.vk.pipeline_batch cimport PipelineBatch


cdef class Shared:
    cdef object pipelines
    cdef object layouts
    cdef object lock


cdef class Pipelines:
    cdef Device device
    cdef Shared shared
    cdef dict modules
    cdef dict layouts
    cdef dict pipelines
    # In the making, and the kernels in the order of the batch
    cdef PipelineBatch batch
    cdef list kernels

    cdef list get_all(self, kernels)
