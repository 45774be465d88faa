"""Samples of convolutions: every kernel, odd channel counts, widths that leave partial tiles."""

import math

import numpy as np
import reference
from harness import Sample, by, normal

# Sums of up to some hundred products.
RTOL = 2e-6

# x, weight, stride, padding, dilation, groups, bias
CONV2D = [
    # dense, each tile: width 8 and more, 7, 4, 3, 2, 1
    ((1, 8, 9, 16), (16, 8, 3, 3), (1, 1), (1, 1), (1, 1), 1, True),
    ((1, 3, 17, 19), (10, 3, 3, 3), (2, 2), (1, 1), (1, 1), 1, True),
    ((2, 5, 7, 7), (33, 5, 3, 3), (1, 1), (1, 1), (1, 1), 1, False),
    ((1, 12, 14, 14), (24, 12, 5, 5), (1, 1), (2, 2), (1, 1), 1, True),
    ((1, 6, 4, 4), (130, 6, 3, 3), (1, 1), (1, 1), (1, 1), 1, True),
    ((1, 7, 5, 3), (6, 7, 3, 3), (1, 1), (1, 1), (1, 1), 1, True),
    ((3, 9, 2, 2), (13, 9, 2, 2), (1, 1), (1, 1), (1, 1), 1, True),
    ((1, 16, 3, 3), (20, 16, 3, 3), (1, 1), (0, 0), (1, 1), 1, True),
    ((1, 70, 3, 2), (9, 70, 3, 2), (1, 1), (0, 0), (1, 1), 1, True),
    # large enough for Winograd's domain, where it may take scratch memory
    ((1, 64, 32, 32), (64, 64, 3, 3), (1, 1), (1, 1), (1, 1), 1, True),
    # unequal numbers along y and x; padding wider than the image; dilation
    ((2, 4, 11, 8), (5, 4, 3, 5), (2, 3), (1, 2), (1, 1), 1, True),
    ((1, 4, 2, 3), (4, 4, 3, 3), (1, 1), (4, 5), (1, 1), 1, True),
    ((1, 4, 12, 15), (8, 4, 3, 3), (1, 1), (2, 2), (2, 2), 1, True),
    ((1, 5, 13, 13), (8, 5, 3, 2), (2, 1), (3, 1), (3, 4), 1, False),
    ((1, 3, 30, 30), (8, 3, 7, 7), (2, 2), (3, 3), (1, 1), 1, True),
    # dilations of a single row or column, which it does not move
    ((1, 4, 5, 9), (8, 4, 1, 3), (1, 1), (0, 1), (1000000007, 1), 1, True),
    ((1, 6, 4, 9), (6, 1, 1, 3), (1, 1), (0, 1), (1000000007, 1), 6, True),
    # pointwise, also on a single pixel and with a stride
    ((1, 16, 14, 14), (96, 16, 1, 1), (1, 1), (0, 0), (1, 1), 1, True),
    ((2, 13, 7, 7), (35, 13, 1, 1), (1, 1), (0, 0), (1, 1), 1, True),
    ((1, 30, 1, 1), (21, 30, 1, 1), (1, 1), (0, 0), (1, 1), 1, True),
    ((3, 6, 1, 1), (10, 6, 1, 1), (1, 1), (0, 0), (1, 1), 1, False),
    ((2, 12, 9, 7), (18, 12, 1, 1), (2, 2), (0, 0), (1, 1), 1, True),
    ((1, 12, 5, 6), (3, 12, 1, 1), (1, 1), (1, 1), (1, 1), 1, True),
    # depthwise
    ((1, 12, 14, 14), (12, 1, 3, 3), (1, 1), (1, 1), (1, 1), 12, True),
    ((2, 10, 15, 13), (10, 1, 3, 3), (2, 2), (1, 1), (1, 1), 10, True),
    ((1, 6, 7, 7), (6, 1, 7, 7), (1, 1), (3, 3), (1, 1), 6, True),
    ((1, 9, 20, 20), (9, 1, 5, 5), (2, 2), (2, 2), (1, 1), 9, False),
    ((1, 8, 16, 16), (8, 1, 3, 3), (1, 1), (2, 2), (2, 2), 8, True),
    ((1, 8, 9, 1), (8, 1, 3, 1), (1, 1), (1, 0), (1, 1), 8, True),
    ((1, 5, 6, 2), (5, 1, 3, 3), (1, 1), (1, 1), (1, 1), 5, True),
    ((1, 4, 14, 24), (4, 1, 3, 11), (1, 1), (1, 5), (1, 1), 4, True),
    ((1, 4, 3, 40), (4, 1, 2, 17), (1, 2), (0, 3), (1, 1), 4, True),
    ((1, 5, 8, 8), (10, 1, 3, 3), (1, 1), (1, 1), (1, 1), 5, True),
    # groups, of whole texels and not
    ((1, 16, 8, 8), (24, 8, 3, 3), (1, 1), (1, 1), (1, 1), 2, True),
    ((2, 16, 7, 7), (16, 4, 1, 1), (1, 1), (0, 0), (1, 1), 4, True),
    ((1, 6, 9, 9), (8, 3, 3, 3), (1, 1), (1, 1), (1, 1), 2, True),
    ((1, 9, 6, 6), (15, 3, 1, 1), (1, 1), (0, 0), (1, 1), 3, False),
    ((2, 10, 8, 8), (30, 5, 3, 3), (2, 2), (1, 1), (1, 1), 2, True),
    # one channel
    ((2, 1, 11, 13), (10, 1, 5, 5), (1, 1), (2, 2), (1, 1), 1, True),
    ((1, 1, 12, 16), (6, 1, 3, 8), (2, 4), (0, 0), (1, 1), 1, False),
    ((1, 1, 9, 14), (5, 1, 3, 4), (1, 2), (3, 4), (2, 3), 1, True),
    # batches; kernels of 7 on wide pictures; odd channels in groups
    ((4, 8, 10, 11), (12, 8, 3, 3), (2, 1), (1, 1), (1, 1), 1, True),
    ((2, 10, 9, 21), (10, 1, 7, 7), (1, 1), (3, 3), (1, 1), 10, True),
    ((1, 7, 15, 16), (7, 1, 7, 7), (2, 2), (3, 3), (1, 1), 7, False),
    ((1, 6, 8, 9), (8, 3, 3, 3), (1, 1), (0, 0), (1, 1), 2, True),
    ((2, 12, 7, 6), (12, 6, 1, 1), (1, 1), (0, 0), (1, 1), 2, True),
    ((3, 14, 6, 6), (21, 2, 3, 3), (1, 1), (2, 2), (2, 2), 7, True),
    # edges of tiles that workgroups share: several images, groups, steps that end in a tap
    ((3, 21, 5, 7), (37, 21, 3, 3), (1, 1), (1, 1), (1, 1), 1, True),
    ((2, 24, 7, 9), (72, 12, 3, 2), (1, 2), (2, 1), (2, 3), 2, True),
    ((1, 68, 9, 8), (66, 68, 1, 1), (1, 1), (0, 0), (1, 1), 1, True),
]

CONV1D = [
    ((2, 1, 70), (9, 1, 16), 4, 8, 1, 1, True),
    ((1, 1, 61), (6, 1, 10), 3, 5, 1, 1, True),
    ((2, 6, 20), (10, 6, 3), 1, 1, 1, 1, True),
    ((1, 7, 33), (5, 7, 5), 2, 2, 1, 1, False),
    ((1, 8, 16), (12, 8, 1), 1, 0, 1, 1, True),
    ((1, 12, 19), (12, 1, 4), 1, 3, 1, 12, True),
    ((1, 12, 19), (12, 1, 3), 1, 4, 2, 12, True),
    ((2, 6, 11), (9, 2, 3), 1, 0, 1, 3, True),
    ((3, 9, 13), (9, 1, 7), 2, 3, 1, 9, True),
]


def convolution(x, weight, bias, stride, padding, dilation, transposed, output_padding, groups):
    if transposed:
        return reference.conv_transpose(x, weight, bias, stride, padding, dilation, output_padding,
                                        groups)
    return reference.conv(x, weight, bias, stride, padding, dilation, groups)


def sample(expect, args, name, clamp=None, computed=False) -> Sample:
    """A convolution of which `expect` is the result, or one with the result between the bounds of
    `clamp`; weight and bias, the second and third argument, are inputs if they are computed."""
    def clamped(*args):
        *args, low, high = args
        return np.clip(expect(*args), -math.inf if low is None else low,
                       math.inf if high is None else high)

    constants = () if computed else (1,) if args[2] is None else (1, 2)
    if clamp:
        return Sample("et_vk.conv_with_clamp.default", [*args, *clamp], clamped,
                      constants=constants, rtol=RTOL, name=f"{name}-{clamp[0]}-{clamp[1]}")
    return Sample("aten.convolution.default", args, expect, constants=constants, rtol=RTOL,
                  name=name)


def one(row, clamp=None, computed=False) -> Sample:
    """The sample of a row; one with an output padding is transposed."""
    sizes, weight_sizes, stride, padding, dilation, *extra, groups, has_bias = row
    numbers = [list(p) if isinstance(p, tuple) else [p]
               for p in (stride, padding, dilation, *(extra or ((0,) * (len(sizes) - 2),)))]
    bias = normal(weight_sizes[1] * groups if extra else weight_sizes[0], seed=2)
    args = [normal(*sizes), normal(*weight_sizes, seed=1), bias if has_bias else None, *numbers[:3],
            bool(extra), numbers[3], groups]
    name = f"{'transposed-' * bool(extra)}{by(sizes)}-{by(weight_sizes)}{'-computed' * computed}"
    if extra and not clamp:
        name += f"-{stride}-{dilation}"
    return sample(convolution, args, name, clamp, computed)


# Bounds as the exporter writes them: relu6, relu, one side, ints for floats.
CLAMPS = ([0, 6.0], [0.0, 1.797e308], [None, 0.5], [-1.797e308, 1])

SAMPLES = [
    *(one(row) for row in (*CONV2D, *CONV1D)),
    # One of each kernel.
    *(one(row, computed=True) for row in (CONV2D[1], CONV2D[15], CONV2D[20], CONV2D[31],
                                           CONV2D[32], CONV2D[35], CONV1D[0], CONV1D[5])),
    *(one(row, clamp) for clamp in CLAMPS
      for row in (CONV2D[0], CONV2D[16], CONV2D[21], CONV2D[32], CONV1D[0])),
]
