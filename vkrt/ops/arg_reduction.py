"""Indices of the extremes along a dimension: argmax and argmin, max and min with indices."""

from __future__ import annotations

import math

from vkrt.ops.broadcast import convert
from vkrt.ops.dtypes import FIRST, INDEX, INT32
from vkrt.ops.reduction import extreme_and_index_sizes, extreme_sizes, kept_order, lower_reduction
from vkrt.ops.registry import op
from vkrt.ops.sizes import wrap
from vkrt.ops.strided_copy import copy_strided, variant
from vkrt.ops.tiles import parts_of_rows
from vkrt.work.tensor import Operand, Tensor, row_major


def _lower_arg(cx, x: Tensor, out: Tensor, dim: int | None, keepdim: bool | None,
               minimum: bool) -> None:
    """Fills `out` with indices of extremes along `dim`; for None, among all elements, row-major."""
    if dim is None:
        source = _flattened(cx, cx.read(x, row_major(x.rank)))
        dim, order = 0, row_major(out.rank)
    else:
        source = cx.read(x)
        dim = wrap(dim, x.rank)
        if x.rank == 0:
            source = source.with_view((1,), (0,))
        order = kept_order(source.order, (dim,), bool(keepdim) and x.rank > 0)
    if source.dtype in ("int8", "uint8", "bool"):
        source = convert(cx, source, "int32")
    result = cx.write(out, order)
    across, count, inner = source.along(dim)
    lanes = max(min(result.packed, 4), 1) if across else 1
    parts = parts_of_rows(result.texels * lanes, count, cx.target.max_loops // (lanes + 1))
    chunk = -(-count // parts)
    params = [minimum, across, count, inner, source.sizes[dim], *source.grid, chunk, parts]
    dtype = variant(source.dtype, result.dtype)
    partial = result
    if parts > 1:
        partial = cx.temporary((parts, result.grid[0] * result.grid[1], result.packed), "int32")
    cx.dispatch("arg_reduce", [*partial.grid, result.packed, *params], [partial], [source],
                partial.texels, dtype=dtype, loops=lanes * (chunk + 1))
    if parts > 1:
        cx.map_texels("arg_join", result, [source, partial], [*params, *partial.grid[:2]],
                      dtype=dtype, loops=4 * parts)


def _flattened(cx, source: Operand) -> Operand:
    """All elements of a row-major operand as one row."""
    flat = (math.prod(source.sizes),)
    if len(source.sizes) < 2 or flat[0] == source.packed:
        return source.with_view(flat, (0,))
    result = cx.temporary(flat, source.dtype, (0,))
    copy_strided(cx, result, source, source.dims())
    return result


@op("aten.argmax.default aten.argmin.default", "self:T dim:i? keepdim:b?", sizes=extreme_sizes,
    dtypes=INDEX)
def _arg(cx, node, x, dim, keepdim):
    _lower_arg(cx, x, node.outs[0], dim, keepdim, node.op == "aten.argmin.default")


@op("aten.max.dim aten.min.dim", "self:T dim:i keepdim:b?", sizes=extreme_and_index_sizes,
    dtypes=FIRST, further=(INT32,), kernels="aten::{0}.dim_{0}")
def _both(cx, node, x, dim, keepdim):
    values, indices = node.outs
    minimum = node.op == "aten.min.dim"
    if cx.used(values):
        lower_reduction(cx, x, values, dim, keepdim, "MIN" if minimum else "MAX")
    if cx.used(indices):
        _lower_arg(cx, x, indices, dim, keepdim, minimum)
