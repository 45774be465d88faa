from vkrt.core.strided_copy cimport StridedCopy

cdef class Packing:
    cdef StridedCopy copy
