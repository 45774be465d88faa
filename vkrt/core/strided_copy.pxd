from libc.stdint cimport int64_t

from vkrt.core.error cimport Error

cdef enum:
    COPY_DIMS = 8

# How a constant of the file lies in a weight's buffer, checked and as the loops want it. Sizes and
# strides count elements, innermost first.
cdef struct StridedCopy:
    size_t itemsize
    size_t packed  # elements of a packed row ..
    ptrdiff_t stride  # .. which lie this far apart in the source
    size_t line  # elements of a packed row in the target, its padding included
    int dims  # the dimensions of a row outside of the packed one
    size_t sizes[COPY_DIMS]
    ptrdiff_t strides[COPY_DIMS]
    size_t steps[COPY_DIMS]  # their strides in the target
    int across  # which of them lies side by side in the source, -1: none
    ptrdiff_t base
    # Parts that can be packed on their own: rows, or columns (elements of all packed rows).
    size_t parts
    bint columns
    size_t part_source  # elements from a part to the next in the source ..
    size_t part_extent  # .. and up to a part's last one; 0: there is nothing to pack
    size_t part_target  # elements from a part to the next in the target
    bint whole  # parts are copied as they are
    # Of the whole constant and the whole weight
    size_t rows
    size_t row_bytes
    size_t source_bytes
    size_t target_bytes

cdef extern nogil:
    int make_strided_copy "vkrt_make_strided_copy"(const int64_t* params, size_t count,
                                                   int64_t itemsize, int64_t rows,
                                                   StridedCopy* copy, Error* error)
    size_t parts_bytes "vkrt_parts_bytes"(const StridedCopy* copy, size_t count)
    size_t rows_bytes "vkrt_rows_bytes"(const StridedCopy* copy, size_t rows)
