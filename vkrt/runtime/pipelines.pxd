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
    cdef readonly str specialize
    # From the driver's row: families of shaders -> names of sizes that are compiled in
    cdef object few
    # Ids of what is compiled in, by (shader's name, whether all are pushed)
    cdef dict constants
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

    cdef Pipeline get(self, shader, params, tuple constants, bint pushed)
