"""Convolution over one or two spatial dimensions, dense, pointwise, depthwise or grouped; also
transposed.

Activations are channels-last. A weight [O, I / groups, kh, kw] (of a transposed one
[I, O / groups, kh, kw]) becomes a matrix whose rows are output channels and whose columns run over
(ky, kx, input channel); a depthwise one becomes rows of ky and columns of (kx, channel).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from vkrt.errors import UnsupportedError
from vkrt.graph.graph import Node
from vkrt.ops import matmul, tiles, winograd
from vkrt.ops.arguments import argument, ints, tensor_argument
from vkrt.ops.registry import op
from vkrt.pte.coerce import as_bool, as_float, as_int
from vkrt.work.tensor import Operand, Tensor, channels_last, row_major
from vkrt.work.tuning import Tuning

# Compilers unroll depthwise.glsl over the kernel's width; a wider one would be too much code.
MAX_DEPTHWISE_KERNEL_X = 15

Pair = tuple[int, int]


@dataclass(frozen=True)
class Convolution:
    """The numbers of one convolution; pairs are (y, x), y of a 1-D one is trivial."""

    kernel: Pair
    stride: Pair
    padding: Pair
    dilation: Pair
    groups: int
    inputs: int
    channels: int
    clamp: tuple[float, float] | None
    transposed: bool = False

    @property
    def group_inputs(self) -> int:
        return self.inputs // self.groups

    @property
    def group_channels(self) -> int:
        return self.channels // self.groups

    @property
    def taps(self) -> int:
        return math.prod(self.kernel)

    @property
    def is_single(self) -> bool:
        return self.inputs == 1 and self.taps > 1

    @property
    def is_pointwise(self) -> bool:
        return (self.groups == 1 and self.taps == 1 and self.stride == (1, 1)
                and self.padding == (0, 0))

    @property
    def is_depthwise(self) -> bool:
        return (self.groups == self.inputs == self.channels and self.groups > 1
                and self.kernel[1] <= MAX_DEPTHWISE_KERNEL_X)

    @property
    def suits_winograd(self) -> bool:
        return (self.groups == 1 and self.kernel == (3, 3)
                and self.stride == self.dilation == (1, 1))

    @property
    def has_whole_texels(self) -> bool:
        return self.groups == 1 or (self.group_inputs % 4 == 0 and self.group_channels % 4 == 0)


def _pair(cx, values: tuple[int, ...], spatial: int, what: str, least: int) -> Pair:
    """One number for each spatial dimension as (y, x)."""
    if len(values) == 1:
        values *= spatial
    if len(values) != spatial or any(value < least for value in values):
        raise UnsupportedError(f"{cx.where()}: {what} {list(values)} for {spatial} spatial "
                               f"dimensions, each of {least} or more expected")
    trivial = 1 if least else 0
    return (trivial, values[0]) if spatial == 1 else (values[0], values[1])


def _read_arguments(cx, node: Node) -> Convolution:
    x, weight = tensor_argument(node, 0), tensor_argument(node, 1)
    transposed = as_bool(argument(node, 6, False))
    if x.rank != weight.rank or x.rank not in (3, 4):
        raise UnsupportedError(f"{cx.where()}: convolution of {list(x.sizes)} with a weight "
                               f"{list(weight.sizes)}; one and two spatial dimensions are possible")
    if x.dtype not in ("float32", "float16") or weight.dtype != x.dtype:
        raise UnsupportedError(f"{cx.where()}: convolution of {x.dtype} with {weight.dtype}")
    spatial = x.rank - 2
    groups = as_int(argument(node, 8, 1))
    inputs, channels = weight.sizes[1] * groups, weight.sizes[0]
    if transposed:
        inputs, channels = channels, inputs
    if groups < 1 or x.sizes[1] != inputs or channels % groups:
        raise UnsupportedError(f"{cx.where()}: convolution of {list(x.sizes)} in {groups} groups "
                               f"with a weight {list(weight.sizes)}")
    clamp = None
    if node.op == "et_vk.conv_with_clamp.default":
        low = as_float(argument(node, 9, -math.inf))
        high = as_float(argument(node, 10, math.inf))
        if math.isnan(low) or math.isnan(high):
            raise UnsupportedError(f"{cx.where()}: bounds {low} and {high}; vkrt limits the "
                                   "results of convolutions to numbers")
        # Where the bounds cross torch gives the upper one, and GLSL's clamp anything.
        clamp = (min(low, high), high)
    return Convolution(
        kernel=_pair(cx, weight.sizes[2:], spatial, "kernel", 1),
        stride=_pair(cx, ints(argument(node, 3, 1)), spatial, "stride", 1),
        padding=_pair(cx, ints(argument(node, 4, 0)), spatial, "padding", 0),
        dilation=_pair(cx, ints(argument(node, 5, 1)), spatial, "dilation", 1),
        groups=groups, inputs=inputs, channels=channels, clamp=clamp, transposed=transposed)


@op("aten.convolution.default", "et_vk.conv_with_clamp.default")
def convolution(cx, node: Node) -> None:
    """clamp(x * weight + bias); args x, weight, bias, stride, padding, dilation, transposed,
    output padding, groups, and of conv_with_clamp low and high."""
    conv = _read_arguments(cx, node)
    x, weight, out = tensor_argument(node, 0), tensor_argument(node, 1), node.outs[0]
    bias = cx.vector(argument(node, 2), x.dtype)
    if conv.transposed:
        _transposed(cx, node, conv, bias)
        return
    if conv.is_single and cx.order_of(x) == row_major(x.rank):
        _single(cx, node, conv, bias)
        return
    order = channels_last(x.rank)
    source = cx.read(x, order)
    if conv.is_pointwise:
        matrix = cx.matrix(weight, order, 1)
        result = cx.write(out, order)
        matmul.multiply(cx, result, source, matrix, rows=source.grid[0] * source.grid[1],
                        bias=bias, bias_kind=_has(node, 2), clamp=conv.clamp)
    elif conv.is_depthwise:
        _depthwise(cx, node, conv, source, bias)
    else:
        _general(cx, node, conv, source, bias)


def _has(node: Node, index: int) -> int:
    return int(argument(node, index) is not None)


def _limits(conv: Convolution) -> list:
    low, high = conv.clamp or (0.0, 0.0)
    return [int(conv.clamp is not None), low, high]


def _sides(source: Operand, result: Operand, height: int, out_height: int) -> list[int]:
    """X, H and Z of the source, X, H and Y of the result."""
    return [source.grid[0], height, source.grid[2], result.grid[0], out_height, result.grid[1]]


def _height(tensor: Tensor) -> int:
    return tensor.sizes[2] if tensor.rank == 4 else 1


def _single(cx, node: Node, conv: Convolution, bias: Operand) -> None:
    """One input channel, left row-major: neither it nor the weights are padded to 4 channels."""
    x, weight, out = tensor_argument(node, 0), tensor_argument(node, 1), node.outs[0]
    source = cx.read(x, row_major(x.rank))
    matrix = cx.matrix(weight, row_major(weight.rank), 1)
    result = cx.write(out, channels_last(out.rank))
    aligned = (conv.dilation[1] == 1 and conv.stride[1] % 4 == 0 and conv.padding[1] % 4 == 0)
    width, rows, texels = result.grid
    params = [x.sizes[-1], _height(x), width, _height(out), rows, conv.channels,
              conv.kernel[1], conv.kernel[0], conv.stride[1], conv.stride[0],
              conv.padding[1], conv.padding[0], conv.dilation[1], conv.dilation[0],
              _has(node, 2), *_limits(conv), int(aligned)]
    cx.dispatch("conv2d_single", params, [result], [source, matrix, bias], width * rows * texels,
                loops=conv.kernel[0] * (1 + -(-conv.kernel[1] // 4)))


def _depthwise(cx, node: Node, conv: Convolution, source: Operand, bias: Operand) -> None:
    x, weight, out = tensor_argument(node, 0), tensor_argument(node, 1), node.outs[0]
    # [C, 1, kh, kw] -> 1, kh | kw, C
    order = (1, *range(2, weight.rank), 0)
    matrix = cx.matrix(weight, order, weight.rank - 2)
    result = cx.write(out, source.order)
    params = [*_sides(source, result, _height(x), _height(out)), conv.channels,
              conv.kernel[1], conv.stride[1], conv.dilation[1],
              conv.kernel[0], conv.stride[0], conv.dilation[0],
              conv.padding[1], conv.padding[0], _has(node, 2), *_limits(conv)]
    width, rows, texels = result.grid
    tile = 8 if width >= cx.target.tuning.wide_depthwise else 2
    cx.dispatch(f"conv2d_depthwise_{tile}", params, [result], [source, matrix, bias],
                -(-width // tile) * rows * texels, loops=conv.taps)


def _general(cx, node: Node, conv: Convolution, source: Operand, bias: Operand) -> None:
    x, weight, out = tensor_argument(node, 0), tensor_argument(node, 1), node.outs[0]
    matrix = cx.matrix(weight, channels_last(weight.rank), 1)
    result = cx.write(out, source.order)
    group_inputs, loops = -(-conv.group_inputs // 4), conv.taps * 2
    width, rows, texels = result.grid
    if conv.suits_winograd and out.dtype == "float32" and width * rows:
        layer = winograd.Layer(conv.inputs, conv.channels, width, _height(out),
                               rows // _height(out))
        strip = winograd.choose(layer, cx.room(), cx.target)
        if strip:
            winograd.convolve(cx, layer, strip, result, source, matrix, bias,
                              has_bias=_has(node, 2), limits=_limits(conv), padding=conv.padding,
                              height=_height(x))
            return
    if conv.has_whole_texels:
        tile = tiles.choose(cx.target.tuning, width, conv.group_channels, rows * conv.groups)
        shader = f"conv2d_{tile[0]}x{tile[1]}"
        count = tiles.invocations(tile, width, conv.group_channels, rows * conv.groups)
        loops += conv.taps * group_inputs
    else:
        shader, count = "conv2d_grouped", width * rows * texels
        group_inputs = conv.group_inputs
        loops = 4 * (loops + conv.taps * group_inputs)
    params = [*_sides(source, result, _height(x), _height(out)), conv.channels,
              conv.kernel[1], conv.kernel[0], conv.stride[1], conv.stride[0],
              conv.padding[1], conv.padding[0], conv.dilation[1], conv.dilation[0],
              group_inputs, conv.group_channels, _has(node, 2), *_limits(conv)]
    cx.dispatch(shader, params, [result], [source, matrix, bias], count, loops=loops)


def _transposed(cx, node: Node, conv: Convolution, bias: Operand) -> None:
    """Gathers: every texel of the result sums the taps that meet it (shaders/common/taps.glsl)."""
    x, weight, out = tensor_argument(node, 0), tensor_argument(node, 1), node.outs[0]
    source = cx.read(x, channels_last(x.rank))
    result = cx.write(out, source.order)
    width, rows, texels = result.grid
    # From one tap that meets a pixel to the next, and how many there are at most.
    steps = [stride // math.gcd(stride, dilation)
             for stride, dilation in zip(conv.stride, conv.dilation)]
    taps = [-(-kernel // step) for kernel, step in zip(conv.kernel, steps)]
    group_inputs, loops = conv.group_inputs, sum(steps) + taps[0]
    if conv.groups == conv.inputs == conv.channels:
        # [C, 1, kh, kw] -> 1, kh | kw, C
        matrix = cx.matrix(weight, (1, *range(2, weight.rank), 0), weight.rank - 2)
        shader, count = "deconv2d_depthwise", width * rows * texels
        loops += math.prod(taps)
    else:
        # [I, O / g, kh, kw] is g, I / g, O / g, kh, kw -> g, O / g | kh, kw, I / g
        split = (conv.groups, conv.group_inputs, *weight.sizes[1:])
        order = (0, *range(2, len(split)), 1)
        matrix = cx.matrix(weight, order, 2, split)
        if conv.has_whole_texels:
            group_inputs = -(-conv.group_inputs // 4)
            shader, count = _phases(cx.target.tuning, conv, source, result,
                                    _height(out))
            loops += math.prod(taps) * (1 + group_inputs)
        else:
            shader, count = "deconv2d_grouped", width * rows * texels
            loops += math.prod(taps) * (1 + 4 * (1 + group_inputs))
    params = [*_sides(source, result, _height(x), _height(out)), conv.channels,
              conv.kernel[1], conv.kernel[0], conv.stride[1], conv.stride[0],
              conv.padding[1], conv.padding[0], conv.dilation[1], conv.dilation[0],
              group_inputs, conv.group_channels, _has(node, 2), *_limits(conv), steps[1], steps[0]]
    cx.dispatch(shader, params, [result], [source, matrix, bias], count, loops=loops)


def _phases(tuning: Tuning, conv: Convolution, source: Operand, result: Operand,
            out_height: int) -> tuple[str, int]:
    """The shader for a transposed convolution with tiles, and its number of invocations.

    Rows and pixels of the result a stride apart make a phase (shaders/common/deconv2d.glsl).
    """
    width, rows, _ = result.grid
    stride_y, stride_x = conv.stride
    phase_rows = rows // out_height * -(-out_height // stride_y)
    phases = min(stride_y, out_height) * min(stride_x, width)
    sizes = -(-width // stride_x), conv.group_channels, phase_rows * phases * conv.groups
    # Of several pixels one at most would meet a single one of the source under a tap.
    tile = tiles.choose(tuning, *sizes) if source.grid[0] > 1 else (1, 4)
    return f"deconv2d_{tile[0]}x{tile[1]}", tiles.invocations(tile, *sizes)
