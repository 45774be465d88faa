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
    # Parts that can be packed on their own: rows, or columns (elements of all packed rows).
    size_t parts
    bint columns
    size_t part_source  # elements from a part to the next in the source ..
    size_t part_extent  # .. and up to a part's last one
    size_t part_target  # elements from a part to the next in the target
    bint whole  # parts are copied as they are


cdef void pack_parts(const Walk* walk, const char* source, char* target, size_t first,
                     size_t count) noexcept nogil
cdef size_t parts_bytes(const Walk* walk, size_t count) noexcept nogil


cdef class Packing:
    cdef Walk walk
    cdef readonly size_t rows
    cdef readonly size_t row_bytes
    cdef readonly size_t source_bytes
    cdef readonly size_t target_bytes
