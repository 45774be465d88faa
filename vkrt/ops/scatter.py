"""Operators that put elements to places which other tensors name.

Elements for the same place are put there in the order of the list: a later one replaces, or is
added to, an earlier one. torch refuses an index outside of its dimension, and so does vkrt where
the index is an input of the program (`vkrt.ops.ids`); an outside index that a program computes is
left out. Every element looks through the whole list, so long lists are left to the host.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

from vkrt.errors import UnsupportedError
from vkrt.ops.broadcast import convert, expanded, is_float, number_of, result_in
from vkrt.ops.dtypes import FIRST
from vkrt.ops.elementwise import compute_dtype
from vkrt.ops.indexing import (
    indexed_sizes,
    indexing_of,
    indices_along,
    indices_by_dimension,
)
from vkrt.ops.padding import pad
from vkrt.ops.registry import op, short_lines
from vkrt.ops.sizes import fail, need_broadcast, wrap
from vkrt.ops.views import reshape, viewed
from vkrt.shader import opcode
from vkrt.work.tensor import Tensor, row_major

# The most places in a list
LONGEST = 4096

# An index that no element of a dimension has
NOWHERE = -1


def index_put_sizes(x, indices, values, _accumulate):
    need_broadcast(values, indexed_sizes(x, indices), "values")
    return (x,)


def _is_short_put(args: Sequence[Any]) -> bool:
    indices = args[1] if len(args) > 1 and isinstance(args[1], (list, tuple)) else ()
    sizes = [reversed(index.sizes) for index in indices if isinstance(index, Tensor)]
    return math.prod(max(lengths) for lengths in zip_longest(*sizes, fillvalue=1)) <= LONGEST


@op("aten.index_put.default", "self:T indices:[T.int32?] values:T accumulate:b?",
    sizes=index_put_sizes, dtypes=FIRST, kernels="aten::{}.out aten::index_put_",
    suits=_is_short_put, indices=indices_by_dimension)
def _index_put(cx, node, x, indices, values, accumulate):
    """Puts rows if dimensions are left behind the indices, else elements (`vkrt.ops.indexing`)."""
    out = node.outs[0]
    dtype = compute_dtype(out.dtype) if accumulate else out.dtype
    chosen = {d: index for d, index in enumerate(indices) if index is not None}
    if not chosen:
        raise UnsupportedError(f"{cx.where()}: argument 'indices': none is a tensor")
    sizes = indexed_sizes(x.sizes, [None if index is None else index.sizes for index in indices])
    target = indexing_of(cx, x, sizes, chosen)
    source, places = convert(cx, target.source, dtype), target.places
    order = target.order if target.has_rows else row_major(len(sizes))
    put = convert(cx, cx.read_lifted(values, order), dtype)
    if put.sizes != sizes:
        put = expanded(cx, put, sizes, order)
    count = math.prod(places.sizes)
    slab = max(source.texels // max(target.count, 1), 1)
    with result_in(cx, dtype, out, source.order) as result:
        cx.dispatch("index_put", [*result.grid, slab, bool(accumulate), target.count, count,
                                  places.packed, *places.grid, *put.grid, not target.has_rows],
                    [result], [source, places, put], result.texels, loops=count)


# Along one dimension

FUNCTIONS = {"sum": "SUM", "prod": "PROD", "mean": "MEAN", "amax": "MAX", "amin": "MIN",
             "add": "SUM", "multiply": "PROD"}


def scatter_sizes(x, dim, index, source, *_others):
    target, places, values = x or (1,), index or (1,), source or (1,)
    dim = wrap(dim, len(x))
    if not len(target) == len(places) == len(values):
        fail("index", f"expected rank {len(x)} of it and of the source, got sizes {list(index)} "
             f"and {list(source)}")
    for d, (count, size, given) in enumerate(zip(places, target, values, strict=True)):
        if (d != dim and count > size) or count > given or (math.prod(places) and not size):
            fail("index", f"sizes {list(index)} reach past {list(x)} or {list(source)}")
    return (x,)


def number_sizes(x, dim, index, _value):
    return scatter_sizes(x, dim, index, index)


def reduced_sizes(x, dim, index, source, reduce, _include_self):
    if reduce not in FUNCTIONS:
        fail("reduce", f"expected one of {tuple(FUNCTIONS)}, got {reduce!r}")
    return scatter_sizes(x, dim, index, source)


_SHORT = short_lines(LONGEST, 2)


@op("aten.scatter.src", "self:T dim:i index:T.int32 src:T", sizes=scatter_sizes, dtypes=FIRST,
    suits=_SHORT, indices=indices_along)
@op("aten.scatter.value", "self:T dim:i index:T.int32 value:n", sizes=number_sizes, dtypes=FIRST,
    suits=_SHORT, indices=indices_along)
def _scatter(cx, node, x, dim, index, elements):
    _put(cx, node.outs[0], x, dim, index, elements)


@op("aten.scatter_add.default", "self:T dim:i index:T.int32 src:T", sizes=scatter_sizes,
    dtypes=FIRST, suits=_SHORT, indices=indices_along)
@op("aten.scatter_reduce.two",
    "self:T dim:i index:T.int32 src:T reduce:s include_self:b?", sizes=reduced_sizes, dtypes=FIRST,
    indices=indices_along)
def _scatter_reduce(cx, node, x, dim, index, source, reduce="add", include_self=True):
    _put(cx, node.outs[0], x, dim, index, source, FUNCTIONS[reduce], include_self is not False)


def _put(cx, out: Tensor, x: Tensor, dim: int, index: Tensor, elements: Tensor | float,
         function: str = "SET", includes: bool = True) -> None:
    """Makes `out` the tensor `x` with elements, or a number, put to places along a dimension by an
    opcode of put_rows.glsl. What was there takes part if `includes` says so."""
    if x.rank == 0 or index.rank == 0:
        # To torch 0-d tensors have one dimension.
        put = _line(cx, elements) if isinstance(elements, Tensor) else elements
        line = Tensor((x.numel,), out.dtype)
        _put(cx, line, _line(cx, x), 0, _line(cx, index), put, function, includes)
        reshape(cx, line, out)
        return
    dim = wrap(dim, x.rank)
    order = (*(d for d in cx.order_of(x) if d != dim), dim)
    dtype = compute_dtype(out.dtype)
    source = convert(cx, cx.read(x, order), dtype)
    # Every row of the result has a list as long as the index; where the index has no such row, its
    # list names nothing.
    sizes = tuple(index.sizes[dim] if d == dim else n for d, n in enumerate(x.sizes))
    places = cx.read(_sized(cx, index, sizes, NOWHERE), order)
    # A number needs no operand: the source fills its binding.
    new, number = source, 0.0
    if isinstance(elements, Tensor):
        new = convert(cx, cx.read(_sized(cx, elements, sizes, 0), order), dtype)
    else:
        number = number_of(elements, out.dtype)
    with result_in(cx, dtype, out, order) as result:
        cx.map_texels("scatter", result, [source, places, new],
                      [opcode("put_rows", function) if function != "SET" else 0, includes,
                       places.packed, places.grid[2], not isinstance(elements, Tensor),
                       float(number) if is_float(dtype) else int(number)],
                      loops=places.grid[2] * 21)


def _line(cx, tensor: Tensor) -> Tensor:
    return viewed(cx, tensor, (tensor.numel,))


def _sized(cx, tensor: Tensor, sizes: tuple[int, ...], number: int) -> Tensor:
    """The tensor cut, or filled up with a number, to `sizes` at the end of every dimension."""
    if tensor.sizes == sizes:
        return tensor
    result = Tensor(sizes, tensor.dtype)
    pad(cx, result, tensor, [0] * tensor.rank, number)
    return result
