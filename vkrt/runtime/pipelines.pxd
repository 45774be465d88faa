# cython: language_level=3

from vkrt.vk.device cimport Device
from vkrt.vk.pipeline cimport Pipeline
from vkrt.vk.pipeline_batch cimport PipelineBatch


cdef class Shared:
    cdef object pipelines
    cdef object layouts
    cdef object lock


cdef class Pipelines:
    cdef Device device
    cdef readonly bint specialize
    cdef Shared shared
    cdef dict modules
    cdef dict layouts
    cdef dict pipelines
    # Names of shaders whose sizes are pushed, too many to compile for each
    cdef set pushed
    # In the making: keys in the order of the batch, and the threads at work on it
    cdef PipelineBatch batch
    cdef list keys
    cdef list threads

    cdef Pipeline get(self, shader, params, int local_size, bint specialize)
