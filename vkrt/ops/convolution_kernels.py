"""Which kernel does a convolution, of floats or of quantized tensors.

Activations are channels-last. A weight is a matrix whose rows are output channels and whose columns
run over (ky, kx, input channel of the group); a depthwise one has rows of ky and columns of
(kx, channel).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from vkrt.ops import tiles
from vkrt.ops.epilogue import EpilogueArgs
from vkrt.ops.pooling import image_sides, x_first
from vkrt.ops.shared_tiles import multiply_shared
from vkrt.ops.sizes import Sizes, fail
from vkrt.ops.strided_copy import variant
from vkrt.work.tensor import Operand, Tensor, short_name
from vkrt.work.tuning import Tile, Tuning

# Compilers unroll depthwise.glsl over the kernel's width; a wider kernel would be too much code.
# The shader's loops have both bounds as well (MOST_X, MOST_TALL_Y).
MAX_DEPTHWISE_KERNEL_X = 15
# Kernels of at most so many rows and columns are unrolled completely; 5 would be too much code.
MAX_UNROLLED_KERNEL = 3

Pair = tuple[int, int]


def convolved(spatial: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes,
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


def deconvolved(spatial: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes,
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


def height_of(tensor: Tensor) -> int:
    """Rows of an image; the images of a volume are its slices. 1 where there is one spatial
    dimension."""
    return tensor.sizes[-2] if tensor.rank > 3 else 1


@dataclass(frozen=True)
class Convolution:
    """A convolution to do. Pairs are (y, x); y is trivial where there is one spatial dimension."""

    x: Tensor
    out: Tensor
    kernel: Pair
    stride: Pair
    padding: Pair
    dilation: Pair
    groups: int

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
    def is_pointwise(self) -> bool:
        # Equal sizes: the images have no padding, not even behind their ends.
        return (self.groups == 1 and self.taps == 1 and self.stride == (1, 1)
                and self.x.sizes[2:] == self.out.sizes[2:])

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
    def window(self) -> list[int]:
        """The kernel and its steps, each x before y."""
        return x_first(self.kernel, self.stride, self.padding, self.dilation)

    def sides(self, source: Operand, result: Operand) -> list[int]:
        """The parameters of image_sides.glsl."""
        return image_sides(source, result, height_of(self.x), height_of(self.out))

    def params(self, source: Operand, result: Operand, group_inputs: int, epilogue: EpilogueArgs,
               tap_steps: Pair = (1, 1)) -> list:
        """The parameters of conv_params.glsl, those of taps.glsl and epilogue.glsl included."""
        return [*self.sides(source, result), self.channels, *self.window, group_inputs,
                self.group_channels, group_inputs == 1, *x_first(tap_steps), *epilogue.params]


def depthwise(cx, conv: Convolution, source: Operand, matrix: Operand,
              epilogue: EpilogueArgs) -> None:
    """One filter for each channel."""
    result = cx.write(conv.out, source.order)
    (kernel_y, kernel_x), (stride_y, stride_x) = conv.kernel, conv.stride
    dilation_y, dilation_x = conv.dilation
    width, rows, texels = result.grid
    height = height_of(conv.out)
    reads, tile, is_tall = [source, matrix, *epilogue.vectors], (2, 1), False
    if (width >= cx.target.tuning.wide_depthwise
            and _wide_registers(conv) <= cx.target.tuning.registers
            and cx.compiled("conv2d_depthwise_8", reads, short_name(result.dtype)) is not None):
        is_tall = (cx.target.tuning.tall_depthwise and height > 1
                     and max(conv.kernel) <= MAX_UNROLLED_KERNEL)
        tile = (4, 2) if is_tall else (8, 1)
    params = [*conv.sides(source, result), conv.channels, kernel_x, stride_x, dilation_x,
              kernel_y, stride_y, dilation_y, *x_first(conv.padding), is_tall, *epilogue.params]
    tiles = -(-width // tile[0]) * -(-height // tile[1]) * (rows // height)
    cx.dispatch(f"conv2d_depthwise_{math.prod(tile)}", params, [result], reads, tiles * texels,
                loops=conv.taps)


def _wide_registers(conv: Convolution) -> int:
    """Registers that an invocation takes for 8 pixels of a row: the sums, the source's pixels that
    later taps meet again, one more pixel, a weight, and 48 for index arithmetic. (Intel has 128:
    its compiler spills 24 for 5x5 with stride 2, and none up to 9x9 with stride 1.)"""
    step = conv.stride[1] // math.gcd(conv.stride[1], conv.dilation[1])
    # A tap and the one `step` behind it share pixels.
    kept = 8 * max(min(step, conv.kernel[1] - step), 0)
    return 4 * (8 + kept + 2) + 48


def general(cx, conv: Convolution, source: Operand, matrix: Operand, epilogue: EpilogueArgs,
            result: Operand) -> None:
    """Any groups, by shared or register tiles where the groups have whole texels."""
    # Channels in a texel of the source: 4, or 16 where it is words of 4.
    each = 16 if source.dtype == "int32" else 4
    group_inputs, loops = -(-conv.group_inputs // each), conv.taps * 2
    tile, feature = (1, 1), ""
    width, rows, texels = result.grid
    reads, dtype = [source, matrix, *epilogue.vectors], variant(source.dtype, result.dtype)
    if conv.has_whole_texels:
        params = conv.params(source, result, group_inputs, epilogue)
        if multiply_shared(cx, "conv2d", params, result, reads, dtype, rows=width * rows,
                           columns=conv.group_channels, count=conv.groups,
                           texels=conv.taps * group_inputs):
            return
        sizes = width, conv.group_channels, rows, conv.groups
        refused = (cx.refused_tiles("conv2d", reads, dtype)
                   | tiles.too_large_for(cx.target.tuning, source, tiles.CONVOLUTION_REGISTERS))
        smaller = (tiles.SMALLER,) if (4, 4) in refused else ()
        tile = tiles.choose(cx.target.tuning, *sizes, refused=refused,
                            allowed=tiles.with_wide((*tiles.CONVOLUTIONS, *smaller), dtype))
        shader, feature = f"conv2d_{tile[0]}x{tile[1]}", tiles.feature_of(tile)
        count = tiles.invocations(tile, *sizes)
        loops += conv.taps * group_inputs
    else:
        shader, count = "conv2d_grouped", width * rows * texels
        group_inputs = conv.group_inputs
        loops = 4 * (loops + conv.taps * group_inputs)
    cx.dispatch(shader, conv.params(source, result, group_inputs, epilogue), [result], reads, count,
                loops=loops, work=math.prod(tile), dtype=dtype, feature=feature)


def transposed(cx, conv: Convolution, source: Operand, matrix: Operand, epilogue: EpilogueArgs,
               is_depthwise: bool) -> None:
    """Gathers: every texel of the result sums the taps that meet it (shaders/conv/taps.glsl). With
    `is_depthwise` the matrix is that of a depthwise convolution."""
    result = cx.write(conv.out, source.order)
    width, rows, texels = result.grid
    # The distance from one tap that meets a pixel to the next, and the most taps that meet a pixel.
    steps = tuple(stride // math.gcd(stride, dilation)
                  for stride, dilation in zip(conv.stride, conv.dilation))
    taps = [-(-kernel // step) for kernel, step in zip(conv.kernel, steps)]
    group_inputs, loops = conv.group_inputs, sum(steps) + taps[0]
    tile, feature = (1, 1), ""
    if is_depthwise:
        shader, count = "deconv2d_depthwise", width * rows * texels
        loops += math.prod(taps)
    elif conv.has_whole_texels:
        group_inputs = -(-conv.group_inputs // 4)
        refused = cx.refused_tiles("deconv2d", [source, matrix, *epilogue.vectors],
                                   short_name(result.dtype))
        tile, count = _phases(cx.target.tuning, conv, source, result, refused)
        shader, feature = f"deconv2d_{tile[0]}x{tile[1]}", tiles.feature_of(tile)
        loops += math.prod(taps) * (1 + group_inputs)
    else:
        shader, count = "deconv2d_grouped", width * rows * texels
        loops += math.prod(taps) * (1 + 4 * (1 + group_inputs))
    params = conv.params(source, result, group_inputs, epilogue, (steps[0], steps[1]))
    cx.dispatch(shader, params, [result], [source, matrix, *epilogue.vectors], count, loops=loops,
                work=math.prod(tile), feature=feature)


def _phases(tuning: Tuning, conv: Convolution, source: Operand, result: Operand,
            refused: set[Tile]) -> tuple[Tile, int]:
    """The tile of a transposed convolution, and its number of invocations. Rows and pixels of the
    result a stride apart make a phase (shaders/conv/deconv2d.glsl)."""
    width, rows, _ = result.grid
    height, (stride_y, stride_x) = height_of(conv.out), conv.stride
    phase_rows = rows // height * -(-height // stride_y)
    phases = min(stride_y, height) * min(stride_x, width)
    sizes = -(-width // stride_x), conv.group_channels, phase_rows, phases * conv.groups
    # With a source one pixel wide, at most one of several pixels would meet it under a tap.
    tile = (1, 4)
    if source.grid[0] > 1:
        allowed = tiles.with_wide(tiles.CONVOLUTIONS, short_name(result.dtype))
        tile = tiles.choose(tuning, *sizes, allowed=allowed, refused=refused)
    return tile, tiles.invocations(tile, *sizes)
