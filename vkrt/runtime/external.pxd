# cython: language_level=3

from vkrt.core.external cimport ExternalCopy, ExternalPlace, IOBinding


cdef class ExternalBinding:
    cdef IOBinding core
    cdef ExternalPlace* in_place
    cdef ExternalCopy* copies_in
    cdef ExternalCopy* copies_out
