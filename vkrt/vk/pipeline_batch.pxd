# cython: language_level=3
"""Pipelines that several threads create side by side."""

cimport cython

from vkrt.vk.api cimport VkPipeline, VkResult
from vkrt.vk.device cimport Device
from vkrt.vk.pipeline cimport Recipe


@cython.final
cdef class PipelineBatch:
    cdef Device device
    cdef Recipe* recipes
    cdef VkPipeline* handles
    cdef VkResult* results
    # How many there are, how many there is capacity for, and which one is the next to be begun
    cdef readonly int size
    cdef int capacity
    cdef int next
    # Calls of `work` that are at a pipeline
    cdef int working
    # (layout, module) of each: they have to outlive the work
    cdef list parts
    # Numbers of those that the driver could not make, once they were taken
    cdef readonly list failed

    cdef bint advance(self) noexcept nogil
    cdef void destroy(self) noexcept
