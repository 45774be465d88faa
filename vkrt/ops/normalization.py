"""Normalizations: over a tensor's last dimensions, over groups of channels, by known moments.

Layer normalization of many short rows is one kernel. Other sets of elements, and those whose
moments the program asks for, take three: moments of parts of the sets (moments.comp), joined
(moments_join.comp), and applied (normalize.comp).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from vkrt.errors import UnsupportedError
from vkrt.graph.graph import Node
from vkrt.ops.arguments import argument, ints, tensor_argument
from vkrt.ops.broadcast import convert, is_float
from vkrt.ops.copying import Walk, emit, variant
from vkrt.ops.registry import op
from vkrt.ops.tiles import parts_of_rows
from vkrt.pte.coerce import as_float, as_int
from vkrt.work.target import LONG_LOOP
from vkrt.work.tensor import Operand, Tensor, row_major


@dataclass(frozen=True)
class Sets:
    """The sets of elements that are normalized, see moments.comp.

    Attributes:
        sizes: how many there are, as the dimensions of their mean.
        across: how many share the packed dimension.
        rows: of texels that each goes through.
        width: elements of the packed dimension that each has.
    """

    sizes: tuple[int, ...]
    across: int
    rows: int
    width: int

    @property
    def count(self) -> int:
        return math.prod(self.sizes)

    @property
    def texels(self) -> int:
        """Texels of one set, of the one that has most."""
        spare = 1 if self.across > 1 and self.width % 4 else 0
        return self.rows * (-(-self.width // 4) + spare)


@dataclass(frozen=True)
class Follow:
    """How a vector follows the texels of a tensor, see shaders/common/follow.glsl."""

    spread: bool
    inner: int
    period: int

    def params(self) -> list[int]:
        return [self.spread, self.inner, self.period]


def _channels(source: Operand) -> Follow:
    """How a vector with an element for each channel (dimension 1) follows the texels."""
    z = source.grid[2]
    if source.order[-1] == 1:
        return Follow(False, 1, z)
    place = source.order.index(1)
    inner = math.prod(source.sizes[d] for d in source.order[place + 1:-1])
    return Follow(True, inner * z, source.sizes[1])


def _vector(cx, tensor: Tensor | None, dtype: str) -> Operand:
    """A norm's scale or shift, texel for texel as the rows it is applied to."""
    if tensor is None:
        return cx.vector(None, dtype)
    if cx.is_constant(tensor):
        return cx.vector(cx.constant_as(tensor, dtype=dtype), dtype)
    if tensor.dtype != dtype or tensor.rank != 1:
        raise UnsupportedError(f"{cx.where()}: {tensor} is computed; vkrt needs a constant or a "
                               f"1-d tensor of dtype {dtype}")
    return cx.vector(tensor, dtype)


def _check_float(cx, out: Tensor) -> None:
    if not is_float(out.dtype):
        raise UnsupportedError(f"{cx.where()}: a result of dtype {out.dtype}")


def _moments(cx, source: Operand, sets: Sets, epsilon: float) -> Operand:
    """(mean, 1 / sqrt(variance + epsilon), 0, 0) of each set: sizes [.., 4]."""
    count = sets.count
    parts = parts_of_rows(count, sets.texels, LONG_LOOP // 3)
    chunk = -(-sets.texels // parts)
    partial = cx.temporary((parts, *sets.sizes, 4), "float32")
    cx.dispatch("moments", [*source.grid, count, sets.across, sets.rows, sets.width, chunk, parts,
                            partial.grid[0]],
                [partial], [source], count * parts, dtype=variant(source.dtype, "float32"),
                loops=2 * (chunk + chunk // 64 + 1))
    moments = cx.temporary((*sets.sizes, 4), "float32")
    cx.dispatch("moments_join", [moments.grid[0], count, parts, epsilon], [moments], [partial],
                count, loops=2 * parts)
    return moments


def _extract(cx, moments: Operand, outs: tuple[Tensor, ...]) -> None:
    """Fills the outputs that anything reads with the sets' mean and scale."""
    strides = moments.strides()[:-1]
    for index, out in enumerate(outs):
        if cx.used(out):
            spare = out.rank - len(strides)
            walk = Walk(tuple(out.sizes), (*strides, *[0] * spare), index)
            emit(cx, cx.write(out), moments, walk)


def _normalize(cx, source: Operand, node: Node, sets: Sets, follow: Follow, weights, biases,
               epsilon: float) -> None:
    """The three stages; `weights` and `biases` are tensors or None."""
    out = node.outs[0]
    moments = _moments(cx, source, sets, epsilon)
    scale, shift = _vector(cx, weights, out.dtype), _vector(cx, biases, out.dtype)
    result = cx.write(out, source.order, over=(source,))
    cx.dispatch("normalize", [*result.grid, result.packed, sets.across, sets.rows, sets.width,
                              moments.grid[0], weights is not None, biases is not None,
                              *follow.params()],
                [result], [source, cx.check_view(moments), scale, shift], result.texels, loops=4)
    _extract(cx, moments, node.outs[1:])


@op("aten.native_layer_norm.default")
def _layer_norm(cx, node):
    """Over the last dimensions; args x, their sizes, weight, bias, epsilon."""
    tensor, out = tensor_argument(node, 0), node.outs[0]
    _check_float(cx, out)
    shape = ints(node.args[1])
    if tuple(tensor.sizes[tensor.rank - len(shape):]) != shape or not shape:
        raise UnsupportedError(f"{cx.where()}: normalized_shape {list(shape)} for {tensor}")
    weight, bias, epsilon = argument(node, 2), argument(node, 3), as_float(argument(node, 4, 1e-5))
    source = convert(cx, cx.read(tensor, row_major(tensor.rank)), out.dtype)
    length = math.prod(shape)
    count = math.prod(shape[:-1]) * source.grid[2]
    rows = source.texels // count if count else 0
    loops = 3 * count + count // 32 + 2
    if (any(map(cx.used, node.outs[1:]))
            or parts_of_rows(rows, count, LONG_LOOP // 4) > 1):
        sets = Sets(tensor.sizes[:tensor.rank - len(shape)] or (1,), 1, math.prod(shape[:-1]),
                    shape[-1])
        _normalize(cx, source, node, sets, Follow(False, 1, count), weight, bias, epsilon)
        return
    scale, shift = _vector(cx, weight, out.dtype), _vector(cx, bias, out.dtype)
    result = cx.write(out, source.order, over=(source,))
    cx.dispatch("layer_norm", [*result.grid, result.packed, rows, count, length, epsilon,
                               weight is not None, bias is not None],
                [result], [source, scale, shift], rows, loops=loops)


@op("aten.native_group_norm.default")
def _group_norm(cx, node):
    """Over groups of channels; args x [N, C, ..], weight, bias, N, C, H * W, groups, epsilon."""
    tensor, out = tensor_argument(node, 0), node.outs[0]
    _check_float(cx, out)
    groups, epsilon = as_int(argument(node, 6, 1)), as_float(argument(node, 7, 1e-5))
    order = cx.order_of(tensor)
    last = order[0] == 0 and order[-1] == 1
    source = cx.read(tensor, order if last else row_major(tensor.rank))
    spatial, each = math.prod(tensor.sizes[2:]), tensor.sizes[1] // groups
    sizes = (tensor.sizes[0], groups)
    if last:
        sets = Sets(sizes, groups, spatial, each)
    else:
        sets = Sets(sizes, 1, each * math.prod(tensor.sizes[2:-1]), tensor.sizes[-1])
    _normalize(cx, source, node, sets, _channels(source), argument(node, 1), argument(node, 2),
               epsilon)


@op("aten._native_batch_norm_legit_no_training.default")
def _batch_norm(cx, node):
    """By running moments; args x [N, C, ..], weight, bias, mean, variance, momentum, epsilon."""
    tensor, out = tensor_argument(node, 0), node.outs[0]
    _check_float(cx, out)
    weight, bias = argument(node, 1), argument(node, 2)
    source = cx.read(tensor)
    vectors = [cx.check_view(_vector(cx, t, out.dtype)) for t in
               (tensor_argument(node, 3), tensor_argument(node, 4), weight, bias)]
    result = cx.write(out, source.order, over=(source,))
    cx.dispatch("batch_norm", [*result.grid, result.packed, as_float(argument(node, 6, 1e-5)),
                               weight is not None, bias is not None, *_channels(source).params()],
                [result], [source, *vectors], result.texels)
    for empty in filter(cx.used, node.outs[1:]):
        cx.write(empty)
