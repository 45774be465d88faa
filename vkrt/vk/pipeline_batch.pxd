"""Pipelines that several threads create side by side."""

cimport cython

from vkrt.core.pipeline_batch cimport PipelineBatch as CorePipelineBatch
from vkrt.vk.device cimport Device


@cython.final
cdef class PipelineBatch:
    cdef object __weakref__
    cdef Device device
    cdef CorePipelineBatch core
    # (layout, module) of each: they have to outlive the work
    cdef list parts
    # Numbers of those that the driver could not make, once they were taken
    cdef readonly list failed
