# cython: language_level=3

from vkrt.runtime.resources cimport Resources


cdef class HostStep:
    cdef object record
    cdef Resources resources
    cdef tuple args
    cdef tuple outs
    cdef list padding

    cdef bint is_choice

    cdef bint run(self, run_kernel, bint skipping) except? True
