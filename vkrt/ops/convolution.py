"""Convolution over one to three spatial dimensions, dense, pointwise, depthwise or grouped; also
transposed.

A weight [O, I / groups, kh, kw] (of a transposed one [I, O / groups, kh, kw]) becomes a matrix as
`vkrt.ops.convolution_kernels` says.
"""

from __future__ import annotations

import math

from vkrt.errors import UnsupportedError
from vkrt.graph.graph import Node
from vkrt.ops import convolution_kernels, matmul, volume, winograd, winograd_shared
from vkrt.ops.attributes import CONVOLUTIONS, INPUTS
from vkrt.ops.channels import ChannelRule
from vkrt.ops.convolution_kernels import Convolution, Pair, convolved, deconvolved, height_of
from vkrt.ops.dtypes import ONE_FLOAT
from vkrt.ops.epilogue import (
    EPILOGUES,
    Epilogue,
    EpilogueArgs,
    node_epilogue,
    node_residual,
    over,
    plain,
)
from vkrt.ops.matmul_strided import some_channels
from vkrt.ops.registry import op
from vkrt.ops.rows import Places, Window, sliding, with_residual
from vkrt.ops.sizes import Sizes, at_least, fail, need_rank, need_sizes, per_dimension, unsupported
from vkrt.ops.volume import Depth
from vkrt.ops.weight_rows import WeightRows
from vkrt.work.target import Target
from vkrt.work.tensor import Operand, Tensor, channels_last, row_major, short_name

# The place of the padding among the arguments
PADDING = 4


def _clamp(*bounds: float | None) -> tuple[float, float] | None:
    """The bounds of the result; None for a convolution without bounds."""
    if not bounds:
        return None
    low, high = (default if bound is None else bound
                 for bound, default in zip(bounds, (-math.inf, math.inf), strict=True))
    if math.isnan(low) or math.isnan(high):
        raise UnsupportedError(f"bounds {low} and {high}; vkrt limits the results of convolutions "
                               "to numbers")
    # Where the bounds cross, torch gives the upper one; GLSL's clamp is undefined.
    return min(low, high), high


def _sizes(x, weight, bias, stride, padding, dilation, transposed, output_padding, groups, *bounds):
    if len(x) < 3:
        fail("input", f"expected at least rank 3, got sizes {list(x)}")
    need_rank(weight, len(x), "weight")
    if len(x) > 5:
        unsupported("input", f"{len(x) - 2} spatial dimensions (sizes {list(x)}); vkrt has "
                    "convolutions of one to three")
    if 0 in weight:
        unsupported("weight", f"no elements (sizes {list(weight)})")
    count = len(x) - 2
    stride = per_dimension(stride, count, "stride", 1)
    padding = per_dimension(padding, count, "padding", 0)
    dilation = per_dimension(dilation, count, "dilation", 1)
    extra = per_dimension(output_padding, count, "output_padding", 0)
    at_least(groups, 1, "groups")
    # A transposed one's weight is [in, out of a group, ..], else [out, in of a group, ..].
    if weight[0] % groups:
        fail("groups", f"{groups} does not divide the {weight[0]} channels of weight sizes "
             f"{list(weight)}")
    channels, out = weight[1] * groups, weight[0]
    if transposed:
        channels, out = out, channels
    if x[1] != channels:
        fail("input", f"expected {channels} channels for weight sizes {list(weight)} and {groups} "
             f"groups, got sizes {list(x)}")
    need_sizes(bias, (out,), "bias")
    _clamp(*bounds)
    if transposed:
        spatial = deconvolved(x[2:], weight[2:], stride, padding, dilation, extra)
    else:
        spatial = convolved(x[2:], weight[2:], stride, padding, dilation)
    return ((x[0], out, *spatial),)


def _multiply_adds(x: Tensor, weight: Tensor, *others) -> int:
    """Every element of the result, or of the input of a transposed one, meets a filter."""
    transposed, groups, (out,) = others[4], others[6], others[-1]
    if transposed:
        return x.numel * math.prod(weight.sizes[1:])
    # The weight may have more input channels (the attribute `INPUTS`).
    return out.numel * x.sizes[1] // groups * math.prod(weight.sizes[2:])


def _pair(values: Sizes, rank: int, trivial: int) -> Pair:
    """One number for each spatial dimension of a tensor, or one for all, as (y, x)."""
    return (trivial if rank == 3 else values[-2:][0], values[-1])


def _row_windows(node: Node, dim: int) -> Places | None:
    x, weight, _, stride, padding, dilation, transposed, further = node.args[:8]
    if dim != 2:
        return None
    step, before, dilated, behind = (values[0] if values else trivial for values, trivial in
                                     ((stride, 1), (padding, 0), (dilation, 1), (further, 0)))
    kernel = weight.sizes[2]
    if not transposed:
        window = Window(dim, step, before, dilated * (kernel - 1) + 1)
    elif (kernel, before, dilated, behind) == (step, 0, 1, 0):
        # Filters lie side by side.
        window = Window(dim, unit=step)
    else:
        return None
    return with_residual(node, dim, [(x, window)])


ROWS = sliding(_row_windows, PADDING)


def _takes_residual(x: Tensor, weight: Tensor, _bias, stride, padding, _dilation, transposed,
                    _output_padding, groups) -> bool:
    """Whether it is a product of pixels with a matrix: those kernels add a residual."""
    return (x.rank < 5 and not transposed and groups == 1 and math.prod(weight.sizes[2:]) == 1
            and not any(padding) and set(stride) <= {1})


# Of a transposed convolution the rows are input channels, and groups read channels of their own.
WEIGHT_ROWS = WeightRows(dim=1, suits=lambda node: not node.args[6] and node.args[8] == 1)
_PARAMETERS = ("input:T weight:T bias:T? stride:[i] padding:[i] dilation:[i] transposed:b "
               "output_padding:[i] groups:i")


@op("aten.convolution.default", _PARAMETERS, sizes=_sizes, dtypes=ONE_FLOAT,
    multiply_adds=_multiply_adds, takes_activation=EPILOGUES, takes_residual=_takes_residual,
    rows=ROWS, channels=ChannelRule(is_linear=False), weight_rows=WEIGHT_ROWS)
@op("et_vk.conv_with_clamp.default", f"{_PARAMETERS} min:f? max:f?", sizes=_sizes, dtypes=ONE_FLOAT,
    multiply_adds=_multiply_adds, rows=ROWS, channels=ChannelRule(is_linear=False),
    weight_rows=WEIGHT_ROWS)
def convolution(cx, node, x, weight, bias, stride, padding, dilation, transposed, _output_padding,
                groups, *bounds):
    """clamp(x * weight + bias); pointwise also activation(x * weight + bias + residual)."""
    out, limits = node.outs[0], _clamp(*bounds)
    conv = Convolution(x, out, _pair(weight.sizes[2:], x.rank, 1), _pair(stride, x.rank, 1),
                       _pair(padding, x.rank, 0), _pair(dilation, x.rank, 1), groups)
    epilogue = plain(cx.vector(bias, x.dtype), bias is not None,
                     Epilogue("CLAMP", limits) if limits else node_epilogue(cx))
    along_z = Depth.of(x, out, weight, stride, padding, dilation)
    if along_z is not None and (transposed or not along_z.is_trivial):
        volume.convolve(cx, conv, along_z, weight, epilogue, transposed)
        return
    if not transposed and x.rank < 5 and _is_single(conv) and cx.order_of(x) == row_major(x.rank):
        _single(cx, conv, weight, epilogue)
        return
    source = cx.read(x, channels_last(x.rank))
    if transposed:
        # [I, O / g, kh, kw] is g, I / g, O / g, kh, kw -> g, O / g | kh, kw, I / g
        split = (conv.groups, conv.group_inputs, *weight.sizes[1:])
        is_depthwise = conv.groups == conv.inputs == conv.channels
        matrix = (_depthwise_matrix(cx, weight) if is_depthwise else
                  cx.matrix(weight, (0, *range(2, len(split)), 1), 2, split))
        convolution_kernels.transposed(cx, conv, source, matrix, epilogue, is_depthwise)
    elif conv.is_pointwise:
        other, first = node_residual(cx, source.order), cx.attribute(INPUTS)
        rows = source.grid[0] * source.grid[1]
        matrix, parts = ((cx.matrix(weight, source.order, 1), None) if first is None else
                         some_channels(cx, weight, source, first))
        result = cx.write(out, source.order, over=over(other, source, matrix, *epilogue.vectors))
        matmul.multiply(cx, result, source, matrix, rows=rows, epilogue=epilogue, residual=other,
                        parts=parts)
    elif conv.is_depthwise:
        convolution_kernels.depthwise(cx, conv, source, _depthwise_matrix(cx, weight), epilogue)
    else:
        matrix = cx.matrix(weight, source.order, 1)
        layer = _winograd_layer(conv)
        if layer is None:
            result = cx.write(out, source.order)
            convolution_kernels.general(cx, conv, source, matrix, epilogue, result)
        else:
            _by_points(cx, conv, layer, source, matrix, epilogue)


def _depthwise_matrix(cx, weight: Tensor) -> Operand:
    """[C, 1, kh, kw] as 1, kh | kw, C."""
    return cx.matrix(weight, (1, *range(2, weight.rank), 0), weight.rank - 2)


def _is_single(conv: Convolution) -> bool:
    return conv.inputs == 1 and conv.taps > 1


def _single(cx, conv: Convolution, weight: Tensor, epilogue: EpilogueArgs) -> None:
    """One input channel, left row-major: neither it nor the weights are padded to 4 channels."""
    x, out = conv.x, conv.out
    source = cx.read(x, row_major(x.rank))
    matrix = cx.matrix(weight, row_major(x.rank), 1)
    result = cx.write(out, channels_last(x.rank))
    aligned = conv.dilation[1] == 1 and conv.stride[1] % 4 == 0 and conv.padding[1] % 4 == 0
    width, rows, texels = result.grid
    params = [x.sizes[-1], height_of(x), width, height_of(out), rows, conv.channels, *conv.window,
              aligned, *epilogue.params]
    cx.dispatch("conv2d_single", params, [result], [source, matrix, *epilogue.vectors],
                width * rows * texels, loops=conv.kernel[0] * (1 + -(-conv.kernel[1] // 4)))


def saved_by_scratch(node: Node, target: Target) -> float:
    """The fraction of the time of direct sums that a convolution saves with scratch memory for all
    of Winograd's points; 0 where it does not use that memory."""
    if node.op not in CONVOLUTIONS or target.scratch != "spare":
        return 0.0
    _, weight, _, stride, _, dilation, transposed, _, groups = node.args[:9]
    if (transposed or groups != 1 or tuple(weight.sizes[2:]) != (3, 3)
            or not {*stride, *dilation} <= {1} or weight.dtype != "float32"):
        return 0.0
    images, channels, height, width = node.outs[0].sizes
    layer = winograd.Layer(weight.sizes[1], channels, width, height, images)
    part = layer.time(target.tuning, layer.whole) / layer.direct_time(target.tuning)
    is_done = part < winograd.GAIN and winograd_shared.time(layer, target) == math.inf
    return 1 - part if is_done else 0.0


def _winograd_layer(conv: Convolution) -> winograd.Layer | None:
    """A convolution as a layer of Winograd's method; None where the method does not fit."""
    if not (conv.suits_winograd and conv.out.dtype == "float32" and conv.out.numel):
        return None
    width, height = conv.out.sizes[-1], height_of(conv.out)
    images = conv.out.numel // (width * height * conv.channels)
    return winograd.Layer(conv.inputs, conv.channels, width, height, images)


def _by_points(cx, conv: Convolution, layer: winograd.Layer, source: Operand, matrix: Operand,
               epilogue: EpilogueArgs) -> None:
    """Dispatches a convolution at Winograd's points, in the fastest way, or by direct sums."""
    is_compiled = cx.compiled(winograd_shared.SHADER, [source, matrix, *epilogue.vectors],
                              short_name(conv.out.dtype)) is not None
    least = winograd_shared.time(layer, cx.target) if is_compiled else math.inf
    fresh, over = (portion if portion and layer.time(cx.target.tuning, portion) < least else None
                    for portion in _portions(cx, conv, layer, source))
    is_larger = over is not None and (fresh is None or over.size > fresh.size)
    result = cx.write(conv.out, source.order, over=(source,) if is_larger else ())
    portion = over if result.storage is source.storage else fresh
    if portion:
        winograd.convolve(cx, layer, portion, result, source, matrix, epilogue,
                          padding=conv.padding, height=height_of(conv.x))
    elif least < math.inf:
        winograd_shared.convolve(cx, layer, result, source, matrix, epilogue,
                                 padding=conv.padding, height=height_of(conv.x))
    else:
        convolution_kernels.general(cx, conv, source, matrix, epilogue, result)


def _portions(cx, conv: Convolution, layer: winograd.Layer,
              source: Operand) -> tuple[winograd.Portion | None, winograd.Portion | None]:
    """What to do at a time at Winograd's points: with a result beside the source, and with one over
    the source. None where a direct sum is better, or where the result cannot lie so."""
    budget = cx.scratch_budget()
    fresh, over = winograd.choose(layer, budget, cx.target), None
    # A node gets a budget when it was lowered before: by direct sums, the result beside the source.
    if cx.number in cx.budgets and conv.x.sizes[2:] == conv.out.sizes[2:] and not cx.used(conv.x):
        over = winograd.choose(layer, budget + source.storage.nbytes, cx.target)
    return fresh, over
