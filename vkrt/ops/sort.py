"""Order along a dimension: sorting, and the largest or smallest few.

Every element counts the elements that come before it. So equal elements stay in their order, and
the time grows with the square of the rows' length only. Long rows are left to the host.
"""

from __future__ import annotations

from collections.abc import Sequence

from vkrt.ops.broadcast import convert, result_in
from vkrt.ops.dtypes import FIRST, INT32
from vkrt.ops.elementwise import compute_dtype
from vkrt.ops.registry import op, short_lines
from vkrt.ops.sizes import fail, wrap
from vkrt.ops.views import reshape, viewed
from vkrt.work.tensor import Tensor, short_name

LONGEST = 2048


def sort_sizes(x, dim, _descending):
    wrap(-1 if dim is None else dim, len(x))
    return x, x


def topk_sizes(x, k, dim, _largest, _sorted):
    dim = wrap(-1 if dim is None else dim, len(x))
    size = x[dim] if x else 1
    if not 0 <= k <= size or (not x and k != 1):
        fail("k", f"expected at most {size}, the size of dimension {dim}, got {k}")
    sizes = (*x[:dim], k, *x[dim + 1:]) if x else ()
    return sizes, sizes


@op("aten.sort.default", "self:T dim:i? descending:b?", sizes=sort_sizes, dtypes=FIRST,
    further=(INT32,), kernels="aten::sort.values", suits=short_lines(LONGEST))
def _sort(cx, node, x, dim, descending):
    _ordered(cx, node.outs, x, dim, bool(descending))


@op("aten.sort.stable", "self:T stable:b? dim:i? descending:b?",
    sizes=lambda x, _stable, *order: sort_sizes(x, *order), dtypes=FIRST, further=(INT32,),
    kernels="aten::sort.values_stable", suits=short_lines(LONGEST))
def _stable_sort(cx, node, x, _stable, dim, descending):
    _ordered(cx, node.outs, x, dim, bool(descending))


@op("aten.topk.default", "self:T k:i dim:i? largest:b? sorted:b?", sizes=topk_sizes, dtypes=FIRST,
    further=(INT32,), kernels="aten::topk.values", suits=short_lines(LONGEST))
def _topk(cx, node, x, _k, dim, largest, _sorted):
    _ordered(cx, node.outs, x, dim, largest is not False)


def _ordered(cx, outs: Sequence[Tensor], x: Tensor, dim: int | None, descends: bool) -> None:
    """Makes `outs` the first elements of `x` in order along a dimension, and their indices."""
    values, indices = outs
    if x.rank == 0:
        # To torch a 0-d tensor has one dimension.
        parts = Tensor((1,), values.dtype), Tensor((1,), indices.dtype)
        _ordered(cx, parts, viewed(cx, x, (1,)), 0, descends)
        for part, out in zip(parts, outs, strict=True):
            reshape(cx, part, out)
        return
    dim = wrap(-1 if dim is None else dim, x.rank)
    order = (*(d for d in cx.order_of(x) if d != dim), dim)
    dtype = compute_dtype(x.dtype)
    source = convert(cx, cx.read(x, order), dtype)
    ranks = cx.temporary(x.sizes, "int32", order)
    length = source.grid[2]
    cx.map_texels("sort_rank", ranks, [source], [descends], dtype=short_name(source.dtype),
                  loops=length * 5)
    with result_in(cx, dtype, values, order) as first:
        places = cx.write(indices, order)
        cx.dispatch("sort_place", [*first.grid, first.packed, length, source.packed],
                    [first, places], [source, ranks], first.texels, loops=length * 5)
