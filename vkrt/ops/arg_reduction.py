"""Where the extremes along a dimension are: argmax and argmin, max and min with indices."""

from __future__ import annotations

import math

from vkrt.errors import UnsupportedError
from vkrt.graph.graph import Node
from vkrt.ops.arguments import argument, dimension, tensor_argument
from vkrt.ops.broadcast import convert
from vkrt.ops.copying import Walk, emit, variant
from vkrt.ops.reduction import MAX, MIN, kept_order, lower_reduction
from vkrt.ops.registry import op
from vkrt.ops.tiles import parts_of_rows
from vkrt.pte.coerce import as_bool
from vkrt.work.tensor import Operand, Tensor, row_major


def _lower_arg(cx, node: Node, out: Tensor, minimum: bool) -> None:
    """The index of the extreme; args x, dimension or None for all elements in a row, keepdim."""
    tensor = tensor_argument(node, 0)
    if out.dtype != "int32":
        raise UnsupportedError(f"{cx.where()}: a result of dtype {out.dtype}")
    chosen = argument(node, 1)
    keepdim = as_bool(argument(node, 2, False))
    if chosen is None:
        source = _flattened(cx, cx.read(tensor, row_major(tensor.rank)))
        dim, order = 0, row_major(out.rank)
    else:
        source = cx.read(tensor)
        dim = dimension(chosen, tensor.rank)
        if tensor.rank == 0:
            source = source.with_view((1,), (0,))
        order = kept_order(source.order, (dim,), keepdim and tensor.rank > 0)
    if source.dtype in ("int8", "uint8", "bool"):
        source = convert(cx, source, "int32")
    result = cx.write(out, order)
    place = source.order.index(dim)
    across = dim == source.order[-1]
    z = source.grid[2]
    count = z if across else source.sizes[dim]
    inner = 1 if across else math.prod(source.sizes[d] for d in source.order[place + 1:-1]) * z
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
        cx.dispatch("arg_join", [*result.grid, result.packed, *params, *partial.grid[:2]],
                    [result], [source, partial], result.texels, dtype=dtype, loops=4 * parts)


def _flattened(cx, source: Operand) -> Operand:
    """All elements of a row-major operand as one row."""
    flat = (math.prod(source.sizes),)
    if len(source.sizes) < 2 or flat[0] == source.packed:
        return source.with_view(flat, (0,))
    result = cx.temporary(flat, source.dtype, (0,))
    emit(cx, result, source, Walk(source.sizes, source.strides()))
    return result


@op("aten.argmax.default")
def _argmax(cx, node):
    _lower_arg(cx, node, node.outs[0], False)


@op("aten.argmin.default")
def _argmin(cx, node):
    _lower_arg(cx, node, node.outs[0], True)


def _lower_both(cx, node: Node, minimum: bool) -> None:
    """The extreme and its index."""
    values, indices = node.outs
    if cx.used(values):
        lower_reduction(cx, node, MIN if minimum else MAX)
    if cx.used(indices):
        _lower_arg(cx, node, indices, minimum)


@op("aten.max.dim")
def _max(cx, node):
    _lower_both(cx, node, False)


@op("aten.min.dim")
def _min(cx, node):
    _lower_both(cx, node, True)
