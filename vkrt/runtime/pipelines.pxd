from vkrt.core.kernels cimport Kernel
from vkrt.vk.device cimport Device
from vkrt.vk.pipeline_batch cimport PipelineBatch


cdef class Shared:
    cdef object pipelines, layouts, lock


cdef class KernelTable


cdef class Pipelines:
    cdef Device device
    cdef Shared shared
    cdef dict modules, layouts, pipelines
    # In the making, and the kernels in the order of the batch
    cdef PipelineBatch batch
    cdef list kernels

    cdef KernelTable get_all(self, kernels)


cdef class KernelTable:
    cdef list pipelines  # that are in it
    cdef Kernel* items

    cdef Kernel* take(self)
