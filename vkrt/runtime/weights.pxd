from vkrt.core.weights cimport Weights as CoreWeights
from vkrt.executable.rows cimport Rows
from vkrt.memory.reader cimport Reader
from vkrt.runtime.handles cimport Handles
from vkrt.runtime.pipelines cimport Pipelines
from vkrt.runtime.streaming cimport Streamer
from vkrt.vk.device cimport Device
from vkrt.vk.memory cimport Allocator


cdef class Weights:
    cdef Device device
    cdef Allocator allocator
    cdef Pipelines pipelines
    cdef Rows rows
    cdef readonly Handles handles
    cdef CoreWeights core
    # What packs them; None when that is done
    cdef object prepack
    # Holds the imports of those that are mapped
    cdef object mapper
    # Of the file, that are copied from there
    cdef readonly object copied_bytes
    # Runs the submissions of a plan with streamed weights; None where none are
    cdef readonly Streamer streamer
    # Reads the rows that runs choose; None where they choose none
    cdef readonly Reader row_reader
    # Methods that use them
    cdef int users
    cdef readonly bint closed
