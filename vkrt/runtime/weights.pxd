# cython: language_level=3

from vkrt.runtime.pipelines cimport Pipelines
from vkrt.runtime.resources cimport Resources
from vkrt.vk.device cimport Device
from vkrt.vk.memory cimport Allocator


cdef class Weights:
    cdef Device device
    cdef Allocator allocator
    cdef Pipelines pipelines
    cdef readonly Resources resources
    cdef readonly tuple storages
    cdef object plan
    cdef object mapper
    cdef list blocks
    # Of the file, that `prepack` reads
    cdef readonly object copied_bytes
    # Runs the sections of a plan with streamed weights; None where none are
    cdef readonly object streamer
    # Methods that use them
    cdef int users
    cdef readonly bint closed
