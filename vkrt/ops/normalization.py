"""Normalizations: over a tensor's last dimensions, over groups of channels, by known moments.

Root mean square normalization is one kernel (rms_norm.comp), and so is layer normalization of many
short rows. Other sets of elements, and those whose moments the program asks for, take three
kernels: moments of parts of the sets (moments.comp), of whole sets (moments_join.comp), and the
normalization by them (normalize.comp).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import zip_longest

from vkrt.graph.graph import Node
from vkrt.ops.broadcast import fill
from vkrt.ops.dtypes import FLOATS, ONE_FLOAT
from vkrt.ops.elementwise import binary
from vkrt.ops.registry import op
from vkrt.ops.rows import except_along
from vkrt.ops.sizes import at_least, fail, need_least_rank, need_sizes
from vkrt.ops.sizes import broadcast as broadcast_sizes
from vkrt.ops.strided_copy import copy_strided, variant
from vkrt.ops.teams import chunk_for, parts_for, team_for
from vkrt.ops.tiles import parts_of_rows
from vkrt.work.tensor import Operand, Tensor, row_major


@dataclass(frozen=True)
class Sets:
    """The sets of elements that are normalized, see moments.comp.

    Attributes:
        sizes: how many there are, as the dimensions of their mean.
        across: how many sets share the packed dimension.
        rows: rows of texels of each set.
        width: elements of the packed dimension that each set has.
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
        """Texels of the set that has most."""
        spare = 1 if self.across > 1 and self.width % 4 else 0
        return self.rows * (-(-self.width // 4) + spare)


def _channels(source: Operand) -> list[int]:
    """The parameters of shaders/reduce/channel_mapping.glsl, which say which element of a vector
    goes with a texel, for an element for each channel (dimension 1)."""
    is_packed, count, inner = source.along(1)
    return [not is_packed, inner, count]


def _moments(cx, source: Operand, sets: Sets, epsilon: float) -> Operand:
    """(mean, 1 / sqrt(variance + epsilon), 0, 0) of each set: sizes [.., 4]."""
    count = sets.count
    parts = parts_for(cx.target, count, sets.texels)
    team = team_for(cx.target, count * parts, -(-sets.texels // parts))
    if team is None:
        parts = parts_of_rows(count, sets.texels, cx.target.max_loops // 3)
    chunk = -(-sets.texels // parts)
    partial = cx.temporary((parts, *sets.sizes, 4), "float32")
    params = [*source.grid, count, sets.across, sets.rows, sets.width, chunk, parts,
              partial.grid[0]]
    dtype = variant(source.dtype, "float32")
    if team is None:
        cx.dispatch("moments", params, [partial], [source], count * parts, dtype=dtype,
                    loops=2 * (chunk + chunk // 64 + 1))
    else:
        team.dispatch(cx, "moments", params, [partial], [source], count * parts, dtype=dtype,
                      loops=4 * team.loops(chunk))
    moments = cx.temporary((*sets.sizes, 4), "float32")
    cx.dispatch("moments_join", [moments.grid[0], count, parts, epsilon], [moments], [partial],
                count, loops=2 * parts)
    return moments


def _extract(cx, moments: Operand, outs: tuple[Tensor, ...]) -> None:
    """Fills the outputs that anything reads with the sets' mean and scale."""
    strides = moments.strides()[:-1]
    for index, out in enumerate(outs):
        if cx.used(out):
            dims = list(zip_longest(out.sizes, strides, fillvalue=0))
            copy_strided(cx, cx.write(out), moments, dims, index)


def _normalize(cx, source: Operand, outs: tuple[Tensor, ...], sets: Sets,
               mapping: list[int], weight: Tensor | None, bias: Tensor | None,
               epsilon: float) -> None:
    """The three stages; makes the normalized tensor, and the moments that anything reads."""
    out = outs[0]
    moments = _moments(cx, source, sets, epsilon)
    scale, shift = cx.vector(weight, out.dtype), cx.vector(bias, out.dtype)
    result = cx.write(out, source.order, over=(source,), read_elsewhere=(scale, shift))
    cx.map_texels("normalize", result, [source, cx.check_view(moments), scale, shift],
                  [sets.across, sets.rows, sets.width, moments.grid[0], weight is not None,
                   bias is not None, *mapping], loops=4)
    _extract(cx, moments, outs[1:])


def _layer_norm_sizes(x, shape, weight, bias, _epsilon):
    start = len(x) - len(shape)
    if not shape or start < 0 or x[start:] != shape:
        fail("normalized_shape", f"expected the last sizes of {list(x)}, got {list(shape)}")
    need_sizes(weight, shape, "weight")
    need_sizes(bias, shape, "bias")
    moments = (*x[:start], *[1] * len(shape))
    return x, moments, moments


@op("aten.native_layer_norm.default", "self:T normalized_shape:[i] weight:T? bias:T? eps:f",
    sizes=_layer_norm_sizes, dtypes=ONE_FLOAT, further=(FLOATS, FLOATS),
    rows=except_along(lambda node: range(node.outs[0].rank)[-len(node.args[1]):]))
def _layer_norm(cx, node, x, shape, weight, bias, epsilon):
    """Over the last dimensions."""
    out = node.outs[0]
    source = cx.read(x, row_major(x.rank))
    count = math.prod(shape[:-1]) * source.grid[2]
    rows = source.texels // count if count else 0
    team = team_for(cx.target, rows, count)
    parts = (parts_of_rows(rows, count, cx.target.max_loops // 4) if team is None
             else parts_for(cx.target, rows, count))
    if any(map(cx.used, node.outs[1:])) or parts > 1:
        sets = Sets(x.sizes[:-len(shape)] or (1,), 1, math.prod(shape[:-1]), shape[-1])
        _normalize(cx, source, node.outs, sets, [False, 1, count], weight, bias, epsilon)
        return
    scale, shift = cx.vector(weight, out.dtype), cx.vector(bias, out.dtype)
    result = cx.write(out, source.order, over=(source,), read_elsewhere=(scale, shift))
    params = [*result.grid, result.packed, rows, count, math.prod(shape), epsilon,
              weight is not None, bias is not None]
    if team is None:
        cx.dispatch("layer_norm", params, [result], [source, scale, shift], rows,
                    loops=3 * count + count // 32 + 2)
    else:
        team.dispatch(cx, "layer_norm", params, [result], [source, scale, shift], rows,
                      loops=5 * team.loops(count))


def _has_vector(node: Node) -> bool:
    """Whether the weight of a root mean square norm is a vector for the rows. The exporter takes
    whatever the norm is multiplied by for the weight: a number, or a gate of any sizes."""
    x, weight, _ = node.args
    return weight.sizes == x.sizes[-1:]


def _rms_norm_dims(node: Node) -> range:
    dims = range(node.outs[0].rank)
    return dims[-1:] if _has_vector(node) else dims


@op("et_vk.rms_norm.default", "input:T weight:T eps:f",
    sizes=lambda x, weight, _: (broadcast_sizes(x, weight),), dtypes=ONE_FLOAT,
    rows=except_along(_rms_norm_dims), broadcasts="input weight")
def _rms_norm(cx, node, x, weight, epsilon):
    """Over the last dimension."""
    out = node.outs[0]
    if _has_vector(node):
        _dispatch_rms_norm(cx, out, x, weight, epsilon)
        return
    ones, normalized = Tensor(x.sizes[-1:], x.dtype), Tensor(x.sizes, x.dtype)
    fill(cx, ones, 1)
    _dispatch_rms_norm(cx, normalized, x, ones, epsilon)
    binary(cx, out, "MUL", normalized, weight)


def _dispatch_rms_norm(cx, out: Tensor, x: Tensor, weight: Tensor, epsilon: float) -> None:
    source = cx.read(x, row_major(x.rank))
    rows, count = source.grid[0] * source.grid[1], source.grid[2]
    factor = cx.vector(weight, x.dtype)
    team = team_for(cx.target, rows, count)
    if team is not None:
        result = cx.write(out, source.order, over=(source,), read_elsewhere=(factor,))
        team.dispatch(cx, "rms_norm", [*result.grid, result.packed, rows, epsilon], [result],
                      [source, factor], rows, loops=3 * team.loops(count))
        return
    chunk = chunk_for(cx.target, rows, count)
    parts = -(-count // chunk) if chunk else 0
    result = cx.write(out, source.order, over=(source,) if parts == 1 else (),
                      read_elsewhere=(factor,))
    cx.dispatch("rms_norm", [*result.grid, result.packed, rows, parts, chunk, epsilon], [result],
                [source, factor], rows * parts, loops=count + count // 64 + chunk + 1)


def _group_norm_sizes(x, weight, bias, batch, channels, spatial, groups, _epsilon):
    need_least_rank(x, 2)
    for name, value, size in (("N", batch, x[0]), ("C", channels, x[1]),
                              ("HxW", spatial, math.prod(x[2:]))):
        if value != size:
            fail(name, f"expected {size} for sizes {list(x)}, got {value}")
    if channels % at_least(groups, 1, "group"):
        fail("group", f"{groups} does not divide {channels} channels")
    need_sizes(weight, (channels,), "weight")
    need_sizes(bias, (channels,), "bias")
    return x, (batch, groups), (batch, groups)


@op("aten.native_group_norm.default", "self:T weight:T? bias:T? N:i C:i HxW:i group:i eps:f",
    sizes=_group_norm_sizes, dtypes=ONE_FLOAT, further=(FLOATS, FLOATS))
def _group_norm(cx, node, x, weight, bias, batch, channels, spatial, groups, epsilon):
    """Over groups of channels of [N, C, ..]."""
    source, (rows, width) = _channel_rows(cx, x, channels // groups)
    across = groups if source.order[-1] == 1 else 1
    _normalize(cx, source, node.outs, Sets((batch, groups), across, rows, width),
               _channels(source), weight, bias, epsilon)


def _channel_rows(cx, x: Tensor, each: int) -> tuple[Operand, tuple[int, int]]:
    """The operand of [N, C, ..] for sets of `each` channels of one image, channels-last where it
    lies so already; the rows and the width of a set (see `Sets`)."""
    order = cx.order_of(x)
    if order[0] == 0 and order[-1] == 1:
        return cx.read(x, order), (math.prod(x.sizes[2:]), each)
    return (cx.read(x, row_major(x.rank)), (each * math.prod(x.sizes[2:-1]), x.sizes[-1]))


def _batch_norm_sizes(x, weight, bias, mean, variance, *_numbers):
    need_least_rank(x, 2)
    for name, sizes in (("weight", weight), ("bias", bias), ("running_mean", mean),
                        ("running_var", variance)):
        need_sizes(sizes, x[1:2], name)
    return x, (0,), (0,)


@op("aten._native_batch_norm_legit_no_training.default",
    "self:T weight:T? bias:T? running_mean:T running_var:T momentum:f eps:f",
    sizes=_batch_norm_sizes, dtypes=ONE_FLOAT, further=(FLOATS, FLOATS),
    rows=except_along(lambda _node: {1}))
def _batch_norm(cx, node, x, weight, bias, mean, variance, _momentum, epsilon):
    """By running moments of the channels of [N, C, ..]."""
    out = node.outs[0]
    source = cx.read(x)
    vectors = [cx.check_view(cx.vector(t, out.dtype)) for t in (mean, variance, weight, bias)]
    result = cx.write(out, source.order, over=(source,), read_elsewhere=tuple(vectors))
    cx.map_texels("batch_norm", result, [source, *vectors],
                  [epsilon, weight is not None, bias is not None, *_channels(source)])
    for empty in filter(cx.used, node.outs[1:]):
        cx.write(empty)


def _own_moments_sizes(x, weight, bias, training, *_numbers):
    need_least_rank(x, 2)
    for name, sizes in (("weight", weight), ("bias", bias)):
        need_sizes(sizes, x[1:2], name)
    if not training:
        fail("training", "expected True where there are no running moments")
    return x, x[1:2], x[1:2]


@op("aten._native_batch_norm_legit.no_stats",
    "input:T weight:T? bias:T? training:b momentum:f eps:f", sizes=_own_moments_sizes,
    dtypes=ONE_FLOAT, further=(FLOATS, FLOATS))
def _batch_norm_of_own_moments(cx, node, x, weight, bias, _training, _momentum, epsilon):
    """By the moments that each channel of [N, C, ..] has itself, over all images."""
    channels = x.sizes[1]
    if x.sizes[0] == 1 and x.rank > 2:
        source, (rows, width) = _channel_rows(cx, x, 1)
    else:
        # The channels of several images lie apart.
        source = cx.read(x, (1, 0, *range(2, x.rank)))
        *middle, width = (x.sizes[d] for d in source.order[1:])
        rows = math.prod(middle)
    across = channels if source.order[-1] == 1 else 1
    _normalize(cx, source, node.outs, Sets((channels,), across, rows, width), _channels(source),
               weight, bias, epsilon)
