# cython: cdivision=True, boundscheck=False, wraparound=False
"""Packing on the host: what the prepack dispatch of a buffer does, without a device."""

from libc.stdint cimport uint8_t, uint64_t
from libc.string cimport memcpy

from vkrt.core.strided_copy cimport StridedCopy

cdef enum:
    # of a cache
    LINE_BYTES = 64
    # of a row of the source that a tile holds
    TILE_BYTES = 256
    # of a tile of single bytes, the largest there is: TILE_BYTES * LINE_BYTES bytes
    TILE_WORDS = 2048
    # between elements: from here on tiles pay
    FAR_APART = 512
    # half of the smallest first level of the cache there is
    CACHE_BYTES = 16384

cdef extern from *:
    """
    #include <stdint.h>
    /* Elements of a file lie anywhere, and are read and written as numbers whatever they are. */
    typedef uint16_t vkrt_element16 __attribute__((aligned(1), may_alias));
    typedef uint32_t vkrt_element32 __attribute__((aligned(1), may_alias));
    """
    ctypedef unsigned short element16 "vkrt_element16"
    ctypedef unsigned int element32 "vkrt_element32"

ctypedef fused element:
    uint8_t
    element16
    element32


cdef void pack_parts(const StridedCopy* copy, const char* source, char* target, size_t first,
                     size_t count) noexcept nogil:
    """Packs `count` parts, `source` being the first byte of the first of them."""
    cdef StridedCopy part = copy[0]
    source += copy.base * <ptrdiff_t>copy.itemsize
    target += first * copy.part_target * copy.itemsize
    if copy.columns:
        # A narrower weight, whose only row it is; the last column brings the padding.
        part.packed = count
        part.line = copy.line - first if first + count == copy.packed else count
        count = min(count, <size_t>1)
    if copy.whole:
        memcpy(target, source, count * copy.part_source * copy.itemsize)
    elif copy.itemsize == 4:
        pack_rows(&part, <const element32*>source, <element32*>target, count)
    elif copy.itemsize == 2:
        pack_rows(&part, <const element16*>source, <element16*>target, count)
    else:
        pack_rows(&part, <const uint8_t*>source, <uint8_t*>target, count)


cdef void pack_rows(const StridedCopy* copy, const element* source, element* target,
                    size_t rows) noexcept nogil:
    cdef size_t _
    if copy.packed == 0:
        return
    for _ in range(rows):
        descend(copy, copy.dims - 1, source, target)
        source += copy.part_source
        target += copy.part_target


cdef void descend(const StridedCopy* copy, int dim, const element* source,
                  element* target) noexcept nogil:
    """Runs over the dimensions from `dim` inwards, then packs lines."""
    cdef size_t _
    if dim == copy.across and dim >= 0:
        dim -= 1
    if dim >= 0:
        for _ in range(copy.sizes[dim]):
            descend(copy, dim - 1, source, target)
            source += copy.strides[dim]
            target += copy.steps[dim]
    elif copy.across >= 0:
        transpose(copy, source, target)
    else:
        line(copy, source, target)


cdef inline void line(const StridedCopy* copy, const element* source,
                      element* target) noexcept nogil:
    """One packed row from elements `stride` apart."""
    cdef size_t i, packed = copy.packed
    if copy.stride == 1 and packed * sizeof(element) > 32:
        memcpy(target, source, packed * sizeof(element))
    else:
        gather(source, target, packed, copy.stride)
    for i in range(packed, copy.line):
        target[i] = 0


cdef void transpose(const StridedCopy* copy, const element* source, element* target) noexcept nogil:
    """Packed rows whose elements of the same place lie side by side in the source."""
    cdef size_t packed = copy.packed, lines = copy.sizes[copy.across], i, k
    cdef size_t step = copy.steps[copy.across], first = 0, strip
    cdef size_t apart = (copy.stride if copy.stride > 0 else -copy.stride) * sizeof(element)
    if apart >= FAR_APART and lines * sizeof(element) >= LINE_BYTES:
        transpose_tiles(copy, source, target)
    else:
        # Lines in turn over a part of the source that stays in the first level of the cache.
        strip = max(CACHE_BYTES // max(apart, <size_t>1), <size_t>16)
        while first < packed:
            for k in range(lines):
                gather(source + <ptrdiff_t>first * copy.stride + k, target + k * step + first,
                       min(strip, packed - first), copy.stride)
            first += strip
    for k in range(lines):
        for i in range(packed, copy.line):
            target[k * step + i] = 0


cdef inline void gather(const element* source, element* target, size_t count,
                        ptrdiff_t stride) noexcept nogil:
    """Elements `stride` apart, one after the other."""
    cdef const element* third = source + 2 * stride
    cdef size_t _
    for _ in range(count // 4):
        target[0] = source[0]
        target[1] = source[stride]
        target[2] = third[0]
        target[3] = third[stride]
        source += 4 * stride
        third += 4 * stride
        target += 4
    for _ in range(count % 4):
        target[0] = source[0]
        source += stride
        target += 1


cdef void transpose_tiles(const StridedCopy* copy, const element* source,
                          element* target) noexcept nogil:
    """The same for rows far apart: both sides are touched in whole cache lines, and once."""
    cdef uint64_t memory[TILE_WORDS]
    cdef element* tile = <element*>memory
    cdef size_t high = TILE_BYTES // sizeof(element), wide = LINE_BYTES // sizeof(element)
    cdef size_t packed = copy.packed, lines = copy.sizes[copy.across]
    cdef size_t k = 0, i, rows, columns, x, y
    cdef const element* from_
    while k < lines:
        rows = min(high, lines - k)
        i = 0
        while i < packed:
            columns = min(wide, packed - i)
            for x in range(columns):
                from_ = source + <ptrdiff_t>(i + x) * copy.stride + k
                for y in range(rows):
                    tile[y * wide + x] = from_[y]
            for y in range(rows):
                memcpy(target + (k + y) * copy.steps[copy.across] + i, tile + y * wide,
                       columns * sizeof(element))
            i += columns
        k += rows
