"""Strided copies between buffers of more bytes than a kernel sees at once.

A copy fills texels of its destination in their order, so it can be done in pieces, for some of the
texels each. The kernel of a piece sees the range of the destination that has these texels, and the
range of the source that has their elements.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from vkrt.ops.copy_params import (
    BASE,
    COUNT,
    DIMS,
    FIRST,
    FIRST_DIM,
    GAP,
    OFFSET,
    PACKED,
    RUN,
)
from vkrt.work.target import Target
from vkrt.work.tensor import Operand, itemsize

# A piece of fewer texels is not divided: where its elements lie too far apart for the device, the
# copy is one that a kernel cannot do in pieces.
FEWEST = 64

Piece = tuple[Sequence[int], Operand, Operand]


def in_ranges(values: Sequence[int], destination: Operand, source: Operand, target: Target
              ) -> Iterator[Piece]:
    """The pieces of a copy, each as `values` (`vkrt.ops.strided_copy.params`), the range that it
    writes and the range that it reads. One piece where the device sees both buffers whole. A piece
    that cannot be made small enough stays too large."""
    most = target.max_buffer_range
    if destination.nbytes <= most and source.nbytes <= most:
        yield values, destination, source
        return
    units = _units(values)
    waiting = [(values[FIRST], values[FIRST] + values[COUNT])]
    while waiting:
        first, end = waiting.pop()
        piece = _piece(values, destination, source, first, end, target.offset_alignment)
        if end - first <= FEWEST or all(operand.nbytes <= most for operand in piece[1:]):
            yield piece
        else:
            middle = _middle(first, end, units)
            waiting += [(middle, end), (first, middle)]


def _units(values: Sequence[int]) -> list[int]:
    """Numbers of texels, the largest first, at whose multiples a copy goes on elsewhere: behind a
    gap of the destination, or at the next index of a dimension."""
    packed, inner = values[PACKED], 1
    units = {values[RUN]} if values[GAP] else set()
    for size, _ in _dims(values):
        inner *= size
        if inner % packed == 0:
            units.add(inner // packed * -(-packed // 4))
        elif inner % 4 == 0:
            units.add(inner // 4)
    return sorted(units, reverse=True)


def _middle(first: int, end: int, units: Sequence[int]) -> int:
    """Where a piece of two texels or more is divided: near its middle, at a multiple of the largest
    unit that has one within the piece."""
    middle = (first + end) // 2
    for unit in units:
        places = [place for place in (middle // unit * unit, -(-middle // unit) * unit)
                  if first < place < end]
        if places:
            return min(places, key=lambda place: abs(place - middle))
    return middle


def _dims(values: Sequence[int]) -> list[tuple[int, int]]:
    """Size and stride, in elements, of each dimension of a copy, the innermost first."""
    return [(values[place], values[place + 1])
            for place in range(FIRST_DIM, FIRST_DIM + 2 * values[DIMS], 2)]


def _piece(values: Sequence[int], destination: Operand, source: Operand, first: int, end: int,
           alignment: int) -> Piece:
    """The texels [first, end) of a copy."""
    low, high = (texel + texel // values[RUN] * values[GAP] + values[OFFSET]
                 for texel in (first, end - 1))
    written, skipped = _range(destination, low, high, alignment)
    low, high = (element // 4 for element in _elements(values, first, end))
    read, passed = _range(source, low, high, alignment)
    result = list(values)
    result[FIRST], result[COUNT] = first, end - first
    result[OFFSET] -= skipped
    result[BASE] -= 4 * passed
    return result, written, read


def _range(operand: Operand, first: int, last: int, alignment: int) -> tuple[Operand, int]:
    """The texels `first` to `last` of a buffer, and a few before them so that the range begins at a
    multiple of the alignment; the number of texels before the range."""
    unit = max(alignment // (4 * itemsize(operand.dtype)), 1)
    start = first // unit * unit
    return Operand(operand.storage, (4 * (last + 1 - start),), operand.dtype, (0,),
                   offset=operand.offset + 4 * itemsize(operand.dtype) * start), start


def _elements(values: Sequence[int], first: int, end: int) -> tuple[int, int]:
    """The least and the largest number of an element of the source that the texels [first, end) of
    a copy read."""
    packed = values[PACKED]
    texels = -(-packed // 4)
    start = first // texels * packed + 4 * (first % texels)
    last = (end - 1) // texels * packed + min(4 * ((end - 1) % texels) + 3, packed - 1)
    dims = _dims(values)
    low = high = values[BASE]
    # From the outermost dimension inwards: the index is the same for all elements as long as it is
    # the same for the first and the last one; behind that any index may occur.
    inner = 1
    for size, _ in dims:
        inner *= size
    start, last = min(start, inner - 1), min(last, inner - 1)
    is_same = True
    for size, stride in reversed(dims):
        inner //= size
        if is_same:
            ends = [place // inner % size * stride for place in (start, last)]
            is_same = ends[0] == ends[1]
        else:
            ends = [0, (size - 1) * stride]
        low, high = low + min(ends), high + max(ends)
    return low, high
