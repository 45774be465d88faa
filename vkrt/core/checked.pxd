"""Arithmetic on numbers that a file may have made up: an overflow is told, never a wrong number."""

from libc.stdint cimport int64_t

cdef extern from * nogil:
    # Whether the result does not fit; it is in `result` where it does.
    bint add_overflows "__builtin_add_overflow"(int64_t a, int64_t b, int64_t* result)
    bint multiply_overflows "__builtin_mul_overflow"(int64_t a, int64_t b, int64_t* result)

cdef extern from "<stdint.h>":
    int64_t PTRDIFF_MAX  # bytes: no memory is larger
