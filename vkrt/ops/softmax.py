"""Softmax and its logarithm."""

from __future__ import annotations

import math

from vkrt.errors import UnsupportedError
from vkrt.graph.graph import Node
from vkrt.ops.arguments import argument, dimension, tensor_argument
from vkrt.ops.broadcast import convert, is_float
from vkrt.ops.copying import variant
from vkrt.ops.registry import op
from vkrt.ops.tiles import parts_of_rows
from vkrt.work.tensor import Operand


def _softmax(cx, node: Node, logarithm: bool) -> None:
    tensor, out = tensor_argument(node, 0), node.outs[0]
    if not is_float(out.dtype):
        raise UnsupportedError(f"{cx.where()}: a result of dtype {out.dtype}")
    dim = dimension(argument(node, 1, 0), tensor.rank)
    source = convert(cx, cx.read(tensor), out.dtype)
    result = cx.write(out, source.order, over=(source,))
    if tensor.rank == 0:
        source = source.with_view((1,), (0,))
    place = source.order.index(dim)
    across = dim == source.order[-1]
    z = source.grid[2]
    count = z if across else source.sizes[dim]
    inner = 1 if across else math.prod(source.sizes[d] for d in source.order[place + 1:-1]) * z
    rows = source.texels // count if count else 0
    if not rows:
        return
    params = [*result.grid, result.packed, logarithm, across, rows, count, inner]
    # Three walks over a row, two of them in one stage.
    parts = parts_of_rows(rows, count, cx.target.max_loops // 4)
    if parts == 1:
        cx.dispatch("softmax", params, [result], [source], rows, loops=3 * count + count // 64 + 1)
    else:
        _staged(cx, source, result, params, parts)


def _staged(cx, source: Operand, result: Operand, params: list, parts: int) -> None:
    """Few or long rows, each in `parts` parts."""
    rows, count = params[6], params[7]
    chunk = -(-count // parts)
    partial = cx.temporary((parts, rows, 8), "float32")
    params = [*params, chunk, parts]
    cx.dispatch("softmax_parts", params, [partial], [source], rows * parts,
                dtype=variant(source.dtype, "float32"), loops=2 * chunk + chunk // 64 + 1)
    cx.dispatch("softmax_apply", params, [result], [source, partial], rows * parts,
                loops=2 * parts + chunk)


@op("aten._softmax.default")
def _softmax_default(cx, node):
    _softmax(cx, node, False)


@op("aten._log_softmax.default")
def _log_softmax(cx, node):
    _softmax(cx, node, True)
