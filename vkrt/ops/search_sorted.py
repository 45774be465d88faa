"""Where elements stand in rows that are in ascending order: bucketize and searchsorted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from vkrt.ops.broadcast import convert, is_float
from vkrt.ops.comparison import promoted
from vkrt.ops.composed import filled
from vkrt.ops.dtypes import INDEX
from vkrt.ops.indexing import gather
from vkrt.ops.operator import Indices
from vkrt.ops.registry import op
from vkrt.ops.sizes import fail, need_rank, need_sizes
from vkrt.work.tensor import Tensor, row_major, short_name


def _search(cx, out: Tensor, rows: Tensor, x: Tensor, right: bool) -> None:
    """Fills `out` with how many elements of a row are less than each element of `x`; with `right`
    equal ones count, too. Rows ascend along the last dimension; there is one for all elements, or
    one for each row of `x`."""
    dtype = promoted(rows.dtype, x.dtype)
    dtype = dtype if is_float(dtype) else "int32"
    of_rows = rows.rank > 1
    source = convert(cx, cx.read(x, row_major(x.rank) if of_rows else None), dtype)
    row = convert(cx, cx.read(rows, row_major(rows.rank)), dtype)
    count = rows.sizes[-1]
    result = cx.write(out, source.order)
    cx.map_texels("search_sorted", result, [source, row], [*row.grid, count, of_rows, right],
                  dtype=short_name(dtype), loops=4 * count.bit_length())


def _search_number(cx, out: Tensor, rows: Tensor, number: float, right: bool) -> None:
    """As `_search` for a number. A whole number is compared with integers as an integer."""
    whole = not is_float(rows.dtype) and float(number).is_integer()
    dtype = "int32" if whole else rows.dtype if is_float(rows.dtype) else "float32"
    _search(cx, out, rows, filled(cx, number, dtype), right)


def bucket_sizes(x, boundaries, *_how):
    need_rank(boundaries, 1, "boundaries")
    return (x if isinstance(x, tuple) else (),)


@op("aten.bucketize.Tensor", "self:T boundaries:T out_int32:b? right:b?", sizes=bucket_sizes,
    dtypes=INDEX)
def _bucketize(cx, node, x, boundaries, _out_int32, right):
    _search(cx, node.outs[0], boundaries, x, bool(right))


@op("aten.bucketize.Scalar", "self:n boundaries:T out_int32:b? right:b?", sizes=bucket_sizes,
    dtypes=INDEX)
def _bucketize_number(cx, node, number, boundaries, _out_int32, right):
    _search_number(cx, node.outs[0], boundaries, number, bool(right))


def search_sizes(rows, x, _out_int32, right, side, sorter):
    if side not in (None, "left", "right"):
        fail("side", f"expected 'left' or 'right', got {side!r}")
    if right and side == "left":
        fail("side", "'left' contradicts right=True")
    if not rows:
        fail("sorted_sequence", "expected at least rank 1, got a 0-d tensor")
    need_sizes(sorter, rows, "sorter")
    number = not isinstance(x, tuple)
    if len(rows) > 1 and (number or len(x) != len(rows) or x[:-1] != rows[:-1]):
        fail("self", f"expected sizes {[*rows[:-1], 'n']}, as the rows have, got "
             f"{'a number' if number else list(x)}")
    return (() if number else x,)


def _sorted(cx, rows: Tensor, sorter: Tensor | None) -> Tensor:
    """The rows in the order of a tensor of indices; without one, as they are."""
    if sorter is None:
        return rows
    result = Tensor(rows.sizes, rows.dtype)
    gather(cx, result, rows, -1, sorter)
    return result


def _sorters(rows: Tensor, *others: Any) -> Iterator[Indices]:
    sorter = others[-1]
    if sorter is not None:
        yield Indices(sorter, rows.sizes[-1])


_REST = "out_int32:b? right:b? side:s? sorter:T.int32?"


@op("aten.searchsorted.Tensor", f"sorted_sequence:T self:T {_REST}", sizes=search_sizes,
    dtypes=INDEX, indices=_sorters)
def _searchsorted(cx, node, rows, x, _out_int32, right, side, sorter):
    _search(cx, node.outs[0], _sorted(cx, rows, sorter), x, bool(right) or side == "right")


@op("aten.searchsorted.Scalar", f"sorted_sequence:T self:n {_REST}", sizes=search_sizes,
    dtypes=INDEX, indices=_sorters)
def _searchsorted_number(cx, node, rows, number, _out_int32, right, side, sorter):
    _search_number(cx, node.outs[0], _sorted(cx, rows, sorter), number,
                   bool(right) or side == "right")
