"""Rows of a constant as constants of their own: they are ranges of its bytes.

A device sees so many bytes of a buffer at once, and a pool of streamed weights holds the largest of
them. So a weight with more bytes than that is brought and bound some rows at a time, each range of
rows as a weight of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import gcd

from vkrt.work.target import MAX_ELEMENTS
from vkrt.work.tensor import ITEMSIZE, Tensor, round_up

# Where that is not too much for a range, each begins at a multiple of so many bytes: devices want
# that of what is read where it lies in the file.
ALIGNED_BYTES = 256
# Every range but the last has a multiple of so many rows: a texel of a layer's result has the sums
# of 4 rows.
TEXEL_ROWS = 4


def has_rows(tensor: Tensor) -> bool:
    """Whether the rows of a constant are ranges of its bytes."""
    constant = tensor.constant
    return (constant is not None and tensor.numel > 0 and not constant.zeros
            and constant.nbytes == tensor.numel * ITEMSIZE.get(constant.dtype, 0))


def rows_of(tensor: Tensor, start: int, end: int) -> Tensor:
    """The rows [start, end) of a constant that `has_rows`; the same tensor for all rows."""
    if (start, end) == (0, tensor.sizes[0]):
        return tensor
    constant = tensor.constant
    assert constant is not None
    each = constant.nbytes // tensor.sizes[0]
    return replace(tensor, sizes=(end - start, *tensor.sizes[1:]), constant=replace(
        constant, offset=constant.offset + start * each, nbytes=(end - start) * each, key=None,
        number=None))


def table_ranges(tables: Sequence[Tensor], most: int) -> list[tuple[int, int]]:
    """The ranges of rows in which tables of as many rows are read by the same indices; see
    `row_ranges`. One range if the rows of one of them are no ranges of bytes."""
    if not all(map(has_rows, tables)):
        return [(0, tables[0].sizes[0])]
    return row_ranges(max(tables, key=lambda table: table.numel * ITEMSIZE[table.dtype]), most)


def row_ranges(tensor: Tensor, most: int, packed: int = -1) -> list[tuple[int, int]]:
    """The ranges [start, end) of a tensor's rows of which each has at most `most` bytes on the
    device, as long as `TEXEL_ROWS` rows do not have more. One range if all rows have no more; else
    they are about as long as each other. The tensor has rank 2 or more; `packed` is the dimension
    that is padded to whole texels."""
    rows, size = tensor.sizes[0], tensor.sizes[packed]
    elements = tensor.numel // (rows * size) * round_up(size, 4) if tensor.numel else 0
    each = elements * ITEMSIZE[tensor.dtype]
    fitting = min(most // each, MAX_ELEMENTS // elements) if each else rows
    if rows <= fitting:
        return [(0, rows)]
    unit = TEXEL_ROWS * ALIGNED_BYTES // gcd(ALIGNED_BYTES, TEXEL_ROWS * each)
    if unit > fitting:
        unit = TEXEL_ROWS
    fitting = max(fitting // unit * unit, unit)
    length = round_up(-(-rows // -(-rows // fitting)), unit)
    return [(start, min(start + length, rows)) for start in range(0, rows, length)]
