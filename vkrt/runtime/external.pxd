from libc.stdint cimport uint64_t

from vkrt.core.external_plan cimport ExternalPlan


cdef class ExternalBinding:
    cdef ExternalPlan core
