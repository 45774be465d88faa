"""Softmax and layer normalization."""

from __future__ import annotations

import math
from dataclasses import replace

from vkrt.errors import UnsupportedError
from vkrt.graph.graph import Node
from vkrt.graph.tensor import Operand, Tensor, row_major
from vkrt.ops.arguments import argument, dimension, ints, tensor_argument
from vkrt.ops.broadcast import convert, is_float
from vkrt.ops.registry import op
from vkrt.pte.coerce import as_float


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
    cx.dispatch("softmax", [*result.grid, result.packed, logarithm, across, rows, count, inner],
                [result], [source], rows, loops=3 * count + count // 64 + 1)


@op("aten._softmax.default")
def _softmax_default(cx, node):
    _softmax(cx, node, False)


@op("aten._log_softmax.default")
def _log_softmax(cx, node):
    _softmax(cx, node, True)


def _vector(cx, tensor: Tensor | None, dtype: str) -> Operand:
    """A norm's scale or shift, texel for texel as the rows it is applied to."""
    if tensor is None:
        return cx.vector(None, dtype)
    if cx.is_constant(tensor):
        return cx.vector(replace(tensor, dtype=dtype), dtype)
    if tensor.dtype != dtype or tensor.rank != 1:
        raise UnsupportedError(f"{cx.where()}: {tensor} is computed; vkrt needs a constant or a "
                               f"1-d tensor of dtype {dtype}")
    return cx.vector(tensor, dtype)


@op("aten.native_layer_norm.default")
def _layer_norm(cx, node):
    tensor, out = tensor_argument(node, 0), node.outs[0]
    if any(cx.used(other) for other in node.outs[1:]):
        raise UnsupportedError(f"{cx.where()}: its mean or its deviation is used")
    if not is_float(out.dtype):
        raise UnsupportedError(f"{cx.where()}: a result of dtype {out.dtype}")
    shape = ints(node.args[1])
    if tuple(tensor.sizes[tensor.rank - len(shape):]) != shape or not shape:
        raise UnsupportedError(f"{cx.where()}: normalized_shape {list(shape)} for {tensor}")
    weight, bias = argument(node, 2), argument(node, 3)
    source = convert(cx, cx.read(tensor, row_major(tensor.rank)), out.dtype)
    scale, shift = _vector(cx, weight, out.dtype), _vector(cx, bias, out.dtype)
    result = cx.write(out, source.order, over=(source,))
    length = math.prod(shape)
    count = math.prod(shape[:-1]) * source.grid[2]
    rows = source.texels // count if count else 0
    cx.dispatch("layer_norm", [*result.grid, result.packed, rows, count, length,
                               as_float(argument(node, 4, 1e-5)), weight is not None,
                               bias is not None],
                [result], [source, scale, shift], rows, loops=3 * count + count // 32 + 2)
