# cython: language_level=3

from vkrt.core.strided_copy cimport StridedCopy


cdef class Packing:
    cdef StridedCopy copy
