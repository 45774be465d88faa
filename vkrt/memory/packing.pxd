# cython: language_level=3

cdef enum:
    PACKING_DIMS = 8

# A walk as the loops want it; sizes and strides count elements, innermost first.
cdef struct Walk:
    size_t itemsize
    size_t packed  # elements of a packed row ..
    ptrdiff_t stride  # .. which lie this far apart in the source
    size_t line  # elements of a packed row in the target, its padding included
    int dims  # the dimensions of a row outside of the packed one
    size_t sizes[PACKING_DIMS]
    ptrdiff_t strides[PACKING_DIMS]
    size_t steps[PACKING_DIMS]  # their strides in the target
    int across  # which of them lies side by side in the source, -1: none
    ptrdiff_t base
    size_t rows
    size_t row_source  # elements from a row to the next in the source ..
    size_t row_extent  # .. and up to a row's last one
    size_t row_target  # elements of a row in the target
    bint whole  # rows are copied as they are


cdef void pack_rows(const Walk* walk, const char* source, char* target, size_t first_row,
                    size_t rows) noexcept nogil


cdef size_t rows_bytes(const Walk* walk, size_t rows) noexcept nogil


cdef class Packing:
    cdef Walk walk
    cdef readonly size_t source_bytes
    cdef readonly size_t target_bytes
    cdef void pack(self, const char* source, char* target, size_t first_row,
                   size_t rows) noexcept nogil
