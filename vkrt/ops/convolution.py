"""Convolution over one or two spatial dimensions, dense, pointwise, depthwise or grouped; also
transposed.

Activations are channels-last. A weight [O, I / groups, kh, kw] (of a transposed one
[I, O / groups, kh, kw]) becomes a matrix whose rows are output channels and whose columns run over
(ky, kx, input channel); a depthwise one becomes rows of ky and columns of (kx, channel).
"""

from __future__ import annotations

import math

from vkrt.dataclass import dataclass
from vkrt.errors import UnsupportedError
from vkrt.ops import matmul, tiles, winograd
from vkrt.ops.dtypes import ONE_FLOAT
from vkrt.ops.pooling import image_sides, x_first
from vkrt.ops.registry import op
from vkrt.ops.sizes import Sizes, at_least, fail, need_rank, need_sizes, spread, unsupported
from vkrt.work.tensor import Operand, Tensor, channels_last, row_major
from vkrt.work.tuning import Tile, Tuning

# Compilers unroll depthwise.glsl over the kernel's width; a wider one would be too much code.
MAX_DEPTHWISE_KERNEL_X = 15

Pair = tuple[int, int]


def _convolved(spatial: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes,
               dilation: Sizes) -> Sizes:
    """Spatial sizes after a convolution."""
    result = []
    for size, k, step, pad, dil in zip(spatial, kernel, stride, padding, dilation, strict=True):
        reach = dil * (k - 1) + 1
        if reach > size + 2 * pad:
            fail("weight", f"a kernel that reaches over {reach} elements is larger than the input "
                 f"of {size} with padding {pad}")
        result.append((size + 2 * pad - reach) // step + 1)
    return tuple(result)


def _deconvolved(spatial: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes,
                 output_padding: Sizes) -> Sizes:
    """Spatial sizes after a transposed convolution."""
    result = []
    for size, k, step, pad, dil, extra in zip(spatial, kernel, stride, padding, dilation,
                                              output_padding, strict=True):
        if extra >= max(step, dil):
            fail("output_padding", f"expected less than stride or dilation ({step}, {dil}), got "
                 f"{extra}")
        length = (size - 1) * step - 2 * pad + dil * (k - 1) + extra + 1
        if length < 1 or size < 1:
            fail("padding", f"leaves {length} elements of an input of {size}")
        result.append(length)
    return tuple(result)


def _clamp(*bounds: float | None) -> tuple[float, float] | None:
    """Between which numbers to limit the result, None for a plain convolution's."""
    if not bounds:
        return None
    low, high = (default if bound is None else bound
                 for bound, default in zip(bounds, (-math.inf, math.inf), strict=True))
    if math.isnan(low) or math.isnan(high):
        raise UnsupportedError(f"bounds {low} and {high}; vkrt limits the results of convolutions "
                               "to numbers")
    # Where the bounds cross torch gives the upper one, and GLSL's clamp anything.
    return min(low, high), high


def _sizes(x, weight, bias, stride, padding, dilation, transposed, output_padding, groups, *bounds):
    if len(x) < 3:
        fail("input", f"expected at least rank 3, got sizes {list(x)}")
    need_rank(weight, len(x), "weight")
    if len(x) > 4:
        unsupported("input", f"{len(x) - 2} spatial dimensions (sizes {list(x)}); vkrt has "
                    "convolutions of one and of two")
    if 0 in weight:
        unsupported("weight", f"no elements (sizes {list(weight)})")
    count = len(x) - 2
    stride = spread(stride, count, "stride", 1)
    padding = spread(padding, count, "padding", 0)
    dilation = spread(dilation, count, "dilation", 1)
    extra = spread(output_padding, count, "output_padding", 0)
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
        spatial = _deconvolved(x[2:], weight[2:], stride, padding, dilation, extra)
    else:
        spatial = _convolved(x[2:], weight[2:], stride, padding, dilation)
    return ((x[0], out, *spatial),)


def _multiply_adds(x: Tensor, weight: Tensor, *others) -> int:
    """Every element of the result, of a transposed one of the input, meets a filter."""
    transposed, (out,) = others[4], others[-1]
    return (x if transposed else out).numel * math.prod(weight.sizes[1:])


def _pair(values: Sizes, rank: int, trivial: int) -> Pair:
    """One number for each spatial dimension of a tensor, or one for all, as (y, x)."""
    return (trivial if rank == 3 else values[0], values[-1])


def _height(tensor: Tensor) -> int:
    return tensor.sizes[2] if tensor.rank == 4 else 1


@dataclass(frozen=True)
class Convolution:
    """What is to be done; pairs are (y, x), y of a 1-D one is trivial.

    Attributes:
        bias: a placeholder where there is none.
        clamp: between which numbers to limit the result.
    """

    x: Tensor
    weight: Tensor
    bias: Operand
    out: Tensor
    stride: Pair
    padding: Pair
    dilation: Pair
    groups: int
    clamp: tuple[float, float] | None

    @property
    def kernel(self) -> Pair:
        return _pair(self.weight.sizes[2:], self.weight.rank, 1)

    @property
    def inputs(self) -> int:
        return self.x.sizes[1]

    @property
    def channels(self) -> int:
        return self.out.sizes[1]

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

    @property
    def has_bias(self) -> bool:
        return not self.bias.placeholder

    @property
    def limits(self) -> list:
        """Whether there is a clamp, and its bounds."""
        return [self.clamp is not None, *(self.clamp or (0.0, 0.0))]

    @property
    def window(self) -> list[int]:
        """The kernel and its steps, each x before y."""
        return x_first(self.kernel, self.stride, self.padding, self.dilation)

    def sides(self, source: Operand, result: Operand) -> list[int]:
        """The parameters of image_sides.glsl."""
        return image_sides(source, result, _height(self.x), _height(self.out))

    def params(self, source: Operand, result: Operand, group_inputs: int) -> list:
        """The parameters of conv_params.glsl."""
        return [*self.sides(source, result), self.channels, *self.window, group_inputs,
                self.group_channels, self.has_bias, *self.limits, group_inputs == 1]

    def depthwise_matrix(self, cx) -> Operand:
        """[C, 1, kh, kw] as 1, kh | kw, C."""
        rank = self.weight.rank
        return cx.matrix(self.weight, (1, *range(2, rank), 0), rank - 2)


_PARAMETERS = ("input:T weight:T bias:T? stride:[i] padding:[i] dilation:[i] transposed:b "
               "output_padding:[i] groups:i")


@op("aten.convolution.default", _PARAMETERS, sizes=_sizes, dtypes=ONE_FLOAT,
    multiply_adds=_multiply_adds, kernels="aten::{}.out")
@op("et_vk.conv_with_clamp.default", f"{_PARAMETERS} min:f? max:f?", sizes=_sizes,
    dtypes=ONE_FLOAT, multiply_adds=_multiply_adds)
def convolution(cx, node, x, weight, bias, stride, padding, dilation, transposed, _output_padding,
                groups, *bounds):
    """clamp(x * weight + bias)."""
    conv = Convolution(x, weight, cx.vector(bias, x.dtype), node.outs[0],
                       stride=_pair(stride, x.rank, 1), padding=_pair(padding, x.rank, 0),
                       dilation=_pair(dilation, x.rank, 1), groups=groups, clamp=_clamp(*bounds))
    if not transposed and conv.is_single and cx.order_of(x) == row_major(x.rank):
        _single(cx, conv)
        return
    source = cx.read(x, channels_last(x.rank))
    if transposed:
        _transposed(cx, conv, source)
    elif conv.is_pointwise:
        matrix = cx.matrix(weight, source.order, 1)
        matmul.multiply(cx, cx.write(conv.out, source.order), source, matrix,
                        rows=source.grid[0] * source.grid[1], bias=conv.bias,
                        has_bias=conv.has_bias, clamp=conv.clamp)
    elif conv.is_depthwise:
        _depthwise(cx, conv, source)
    else:
        _general(cx, conv, source)


def _single(cx, conv: Convolution) -> None:
    """One input channel, left row-major: neither it nor the weights are padded to 4 channels."""
    x, out = conv.x, conv.out
    source = cx.read(x, row_major(x.rank))
    matrix = cx.matrix(conv.weight, row_major(x.rank), 1)
    result = cx.write(out, channels_last(x.rank))
    aligned = conv.dilation[1] == 1 and conv.stride[1] % 4 == 0 and conv.padding[1] % 4 == 0
    width, rows, texels = result.grid
    params = [x.sizes[-1], _height(x), width, _height(out), rows, conv.channels, *conv.window,
              conv.has_bias, *conv.limits, aligned]
    cx.dispatch("conv2d_single", params, [result], [source, matrix, conv.bias],
                width * rows * texels, loops=conv.kernel[0] * (1 + -(-conv.kernel[1] // 4)))


def _depthwise(cx, conv: Convolution, source: Operand) -> None:
    matrix = conv.depthwise_matrix(cx)
    result = cx.write(conv.out, source.order)
    (kernel_y, kernel_x), (stride_y, stride_x) = conv.kernel, conv.stride
    dilation_y, dilation_x = conv.dilation
    params = [*conv.sides(source, result), conv.channels, kernel_x, stride_x, dilation_x,
              kernel_y, stride_y, dilation_y, *x_first(conv.padding), conv.has_bias, *conv.limits]
    width, rows, texels = result.grid
    tile = 8 if width >= cx.target.tuning.wide_depthwise else 2
    cx.dispatch(f"conv2d_depthwise_{tile}", params, [result], [source, matrix, conv.bias],
                -(-width // tile) * rows * texels, loops=conv.taps)


def _general(cx, conv: Convolution, source: Operand) -> None:
    out = conv.out
    matrix = cx.matrix(conv.weight, source.order, 1)
    result = cx.write(out, source.order)
    group_inputs, loops = -(-conv.group_inputs // 4), conv.taps * 2
    tile = 1, 1
    width, rows, texels = result.grid
    if conv.suits_winograd and out.dtype == "float32" and width * rows:
        layer = winograd.Layer(conv.inputs, conv.channels, width, _height(out),
                               rows // _height(out))
        strip = winograd.choose(layer, cx.scratch_budget(), cx.target)
        if strip:
            winograd.convolve(cx, layer, strip, result, source, matrix, conv.bias,
                              has_bias=conv.has_bias, limits=conv.limits, padding=conv.padding,
                              height=_height(conv.x))
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
    cx.dispatch(shader, conv.params(source, result, group_inputs), [result],
                [source, matrix, conv.bias], count, loops=loops, work=math.prod(tile))


def _transposed(cx, conv: Convolution, source: Operand) -> None:
    """Gathers: every texel of the result sums the taps that meet it (shaders/common/taps.glsl)."""
    result = cx.write(conv.out, source.order)
    width, rows, texels = result.grid
    # From one tap that meets a pixel to the next, and how many there are at most.
    steps = [stride // math.gcd(stride, dilation)
             for stride, dilation in zip(conv.stride, conv.dilation)]
    taps = [-(-kernel // step) for kernel, step in zip(conv.kernel, steps)]
    group_inputs, loops = conv.group_inputs, sum(steps) + taps[0]
    tile = 1, 1
    if conv.groups == conv.inputs == conv.channels:
        matrix = conv.depthwise_matrix(cx)
        shader, count = "deconv2d_depthwise", width * rows * texels
        loops += math.prod(taps)
    else:
        # [I, O / g, kh, kw] is g, I / g, O / g, kh, kw -> g, O / g | kh, kw, I / g
        split = (conv.groups, conv.group_inputs, *conv.weight.sizes[1:])
        order = (0, *range(2, len(split)), 1)
        matrix = cx.matrix(conv.weight, order, 2, split)
        if conv.has_whole_texels:
            group_inputs = -(-conv.group_inputs // 4)
            tile, count = _phases(cx.target.tuning, conv, source, result)
            shader = f"deconv2d_{tile[0]}x{tile[1]}"
            loops += math.prod(taps) * (1 + group_inputs)
        else:
            shader, count = "deconv2d_grouped", width * rows * texels
            loops += math.prod(taps) * (1 + 4 * (1 + group_inputs))
    params = [*conv.params(source, result, group_inputs), *x_first(steps)]
    cx.dispatch(shader, params, [result], [source, matrix, conv.bias], count, loops=loops,
                work=math.prod(tile))


def _phases(tuning: Tuning, conv: Convolution, source: Operand,
            result: Operand) -> tuple[Tile, int]:
    """The tile of a transposed convolution, and its number of invocations.

    Rows and pixels of the result a stride apart make a phase (shaders/common/deconv2d.glsl).
    """
    width, rows, _ = result.grid
    height, (stride_y, stride_x) = _height(conv.out), conv.stride
    phase_rows = rows // height * -(-height // stride_y)
    phases = min(stride_y, height) * min(stride_x, width)
    sizes = -(-width // stride_x), conv.group_channels, phase_rows * phases * conv.groups
    # Of several pixels one at most would meet a single one of the source under a tap.
    tile = tiles.choose(tuning, *sizes) if source.grid[0] > 1 else (1, 4)
    return tile, tiles.invocations(tile, *sizes)
