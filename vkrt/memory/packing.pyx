# cython: language_level=3
# cython: cdivision=True, boundscheck=False, wraparound=False
"""Packing on the host: what the prepack dispatch of a buffer does, without a device.

The parameters are those of the copy shaders (shaders/common/copy.glsl, `vkrt.ops.copying`): a walk
over the source's elements in the order of the target's, whose innermost dimension is packed in
texels of 4 elements with zeros behind its end.
"""

import math

from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy

from vkrt.errors import InputError

# ids of the copy shaders' parameters
cdef enum:
    DIMS = 0
    PACKED = 5
    FIRST = 6
    COUNT = 7
    GAP = 9
    OFFSET = 10
    BASE = 11
    WALK = 15

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

ctypedef fused element:
    uint8_t
    uint16_t
    uint32_t


cdef class Packing:
    """How a constant of the file lies in a weight's buffer; moves rows of it.

    Args:
        params: of a `Prepack` (`vkrt.work.records`) into a buffer.
        itemsize: bytes of an element, 1, 2 or 4, the same on both sides.
        rows: of the `Prepack`: how many equal parts, one after the other on both sides, can be
            packed independently.

    Attributes:
        source_bytes, target_bytes: of the whole constant and of the whole weight.
        rows, row_bytes: number of rows, and bytes of one in the source.
        is_copy: whether the weight has the constant's bytes as they are.

    Raises:
        InputError: the parameters are not such a walk.
    """

    def __init__(self, params, itemsize, rows=1):
        cdef Walk* walk = &self.walk
        cdef int k
        params = [int(value) for value in params]
        if itemsize not in (1, 2, 4):
            raise InputError(f"elements of {itemsize} bytes; expected 1, 2 or 4")
        if (len(params) <= WALK or not 0 < params[DIMS] <= PACKING_DIMS
                or len(params) < WALK + 2 * params[DIMS] or rows < 1
                or min(params[PACKED], params[COUNT], *params[WALK:WALK + 2 * params[DIMS]:2]) < 0):
            raise InputError(f"{params} with {rows} rows are not parameters of a copy")
        if params[FIRST] or params[GAP] or params[OFFSET]:
            raise InputError("a copy into a part of a tensor cannot be packed on the host")
        dims = [(params[WALK + 2 * k], params[WALK + 2 * k + 1]) for k in range(params[DIMS])]
        packed = params[PACKED]
        texels = -(-packed // 4)
        elements = params[COUNT] // texels * packed if texels else 0
        if (elements != math.prod(size for size, _ in dims)
                or packed and elements % (rows * packed)):
            raise InputError(f"{params[COUNT]} texels of rows of {packed} elements are not "
                             f"{rows} rows of a walk over {dims}")
        walk.itemsize = itemsize
        walk.packed = packed
        walk.line = texels * 4
        walk.base = params[BASE]
        walk.parts = rows
        walk.part_source = elements // rows
        walk.part_target = params[COUNT] * 4 // rows
        walk.across = -1
        self.rows = rows
        self.row_bytes = walk.part_source * itemsize
        self.source_bytes = self.target_bytes = 0
        if not elements:
            return
        inner, outer = cut(dims, packed)
        outer, beyond = cut(outer, elements // rows // packed)
        if len(inner) > 1 or (beyond and beyond != [(rows, elements // rows)]):
            raise InputError(f"{rows} rows of a walk over {dims} cannot be packed one by one")
        walk.stride = inner[0][1] if inner else 1
        if packed % 4 == 0 and walk.stride == 1:
            # Lines without padding that follow each other on both sides are one line.
            while outer and outer[0][1] == walk.packed:
                walk.packed *= outer[0][0]
                outer = outer[1:]
            walk.line = walk.packed
            walk.whole = not outer and walk.packed == walk.part_source
        step = walk.line
        walk.dims = len(outer)
        for k, (size, stride) in enumerate(outer):
            walk.sizes[k], walk.strides[k], walk.steps[k] = size, stride, step
            step *= size
            if walk.across < 0 and stride == 1 and walk.stride != 1:
                walk.across = k
        lowest = walk.base + sum(min((size - 1) * stride, 0) for size, stride in outer)
        highest = walk.base + sum(max((size - 1) * stride, 0) for size, stride in outer)
        # Columns that follow each other in the source are parts too.
        if rows == 1 and not walk.whole and lowest >= 0 and highest < walk.stride:
            walk.columns = True
            walk.parts, walk.part_source, walk.part_target = walk.packed, walk.stride, 1
        else:
            lowest += min((walk.packed - 1) * walk.stride, 0)
            highest += max((walk.packed - 1) * walk.stride, 0)
        if lowest < 0:
            raise InputError(f"a walk over {dims} from {walk.base} starts before the constant")
        walk.part_extent = highest + 1
        self.source_bytes = parts_bytes(walk, walk.parts)
        self.target_bytes = params[COUNT] * 4 * itemsize

    def bytes_of(self, size_t rows):
        """Bytes of the source that some rows take."""
        return self.source_bytes - (self.rows - rows) * self.row_bytes if rows else 0

    @property
    def is_copy(self):
        return bool(self.walk.whole) and self.walk.base == 0


cdef size_t parts_bytes(const Walk* walk, size_t count) noexcept nogil:
    """Bytes of the source that some parts in a row take."""
    return (walk.part_extent + (count - 1) * walk.part_source) * walk.itemsize if count else 0


def cut(dims, count):
    """Splits the dimensions of a walk, innermost first, after `count` elements; drops sizes of 1.

    Raises:
        InputError: there is no such place.
    """
    inner, outer = [], []
    for size, stride in dims:
        taken = math.gcd(size, count)
        if taken not in (size, count):
            raise InputError(f"a walk over {dims} has no border after {count} elements")
        count //= taken
        if taken > 1:
            inner.append((taken, stride))
        if size > taken:
            outer.append((size // taken, stride * taken))
    if count != 1:
        raise InputError(f"a walk over {dims} is over before its border")
    return inner, outer


cdef void pack_parts(const Walk* walk, const char* source, char* target, size_t first,
                     size_t count) noexcept nogil:
    """Packs `count` parts, `source` being the first byte of the first of them."""
    cdef Walk part = walk[0]
    source += walk.base * <ptrdiff_t>walk.itemsize
    target += first * walk.part_target * walk.itemsize
    if walk.columns:
        # A narrower weight, whose only row it is; the last column brings the padding.
        part.packed = count
        part.line = walk.line - first if first + count == walk.packed else count
        count = min(count, <size_t>1)
    if walk.whole:
        memcpy(target, source, count * walk.part_source * walk.itemsize)
    elif walk.itemsize == 4:
        pack_rows(&part, <const uint32_t*>source, <uint32_t*>target, count)
    elif walk.itemsize == 2:
        pack_rows(&part, <const uint16_t*>source, <uint16_t*>target, count)
    else:
        pack_rows(&part, <const uint8_t*>source, <uint8_t*>target, count)


cdef void pack_rows(const Walk* walk, const element* source, element* target,
                    size_t rows) noexcept nogil:
    cdef size_t _
    if walk.packed == 0:
        return
    for _ in range(rows):
        descend(walk, walk.dims - 1, source, target)
        source += walk.part_source
        target += walk.part_target


cdef void descend(const Walk* walk, int dim, const element* source,
                  element* target) noexcept nogil:
    """Runs over the dimensions from `dim` inwards, then packs lines."""
    cdef size_t _
    if dim == walk.across and dim >= 0:
        dim -= 1
    if dim >= 0:
        for _ in range(walk.sizes[dim]):
            descend(walk, dim - 1, source, target)
            source += walk.strides[dim]
            target += walk.steps[dim]
    elif walk.across >= 0:
        transpose(walk, source, target)
    else:
        line(walk, source, target)


cdef inline void line(const Walk* walk, const element* source, element* target) noexcept nogil:
    """One packed row from elements `stride` apart."""
    cdef size_t i, packed = walk.packed
    if walk.stride == 1 and packed * sizeof(element) > 32:
        memcpy(target, source, packed * sizeof(element))
    else:
        gather(source, target, packed, walk.stride)
    for i in range(packed, walk.line):
        target[i] = 0


cdef void transpose(const Walk* walk, const element* source, element* target) noexcept nogil:
    """Packed rows whose elements of the same place lie side by side in the source."""
    cdef size_t packed = walk.packed, lines = walk.sizes[walk.across], i, k
    cdef size_t step = walk.steps[walk.across], first = 0, strip
    cdef size_t apart = (walk.stride if walk.stride > 0 else -walk.stride) * sizeof(element)
    if apart >= FAR_APART and lines * sizeof(element) >= LINE_BYTES:
        transpose_tiles(walk, source, target)
    else:
        # Lines in turn over a part of the source that stays in the first level of the cache.
        strip = max(CACHE_BYTES // max(apart, <size_t>1), <size_t>16)
        while first < packed:
            for k in range(lines):
                gather(source + <ptrdiff_t>first * walk.stride + k, target + k * step + first,
                       min(strip, packed - first), walk.stride)
            first += strip
    for k in range(lines):
        for i in range(packed, walk.line):
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


cdef void transpose_tiles(const Walk* walk, const element* source, element* target) noexcept nogil:
    """The same for rows far apart: both sides are touched in whole cache lines, and once."""
    cdef uint64_t memory[TILE_WORDS]
    cdef element* tile = <element*>memory
    cdef size_t high = TILE_BYTES // sizeof(element), wide = LINE_BYTES // sizeof(element)
    cdef size_t packed = walk.packed, lines = walk.sizes[walk.across]
    cdef size_t k = 0, i, rows, columns, x, y
    cdef const element* from_
    while k < lines:
        rows = min(high, lines - k)
        i = 0
        while i < packed:
            columns = min(wide, packed - i)
            for x in range(columns):
                from_ = source + <ptrdiff_t>(i + x) * walk.stride + k
                for y in range(rows):
                    tile[y * wide + x] = from_[y]
            for y in range(rows):
                memcpy(target + (k + y) * walk.steps[walk.across] + i, tile + y * wide,
                       columns * sizeof(element))
            i += columns
        k += rows
