"""Samples of convolutions over three spatial dimensions, transposed ones too."""

import numpy as np
from harness import Sample, normal

from samples.convolution import convolution

# x, weight, stride, padding, dilation, groups, bias
PLAIN = [
    ((1, 4, 6, 8, 10), (8, 4, 3, 3, 3), (2, 2, 2), (1, 1, 1), (1, 1, 1), 1, True),
    ((2, 5, 4, 7, 7), (6, 5, 3, 3, 3), (1, 1, 1), (1, 1, 1), (1, 1, 1), 1, False),
    ((1, 8, 5, 6, 9), (12, 8, 2, 3, 1), (1, 2, 3), (1, 0, 2), (2, 1, 1), 1, True),
    # of one slice, along the slices alone, pointwise, pointwise with a stride
    ((2, 6, 3, 9, 8), (8, 6, 1, 3, 3), (1, 1, 1), (0, 1, 1), (1, 1, 1), 1, True),
    ((1, 8, 7, 5, 6), (8, 8, 3, 1, 1), (1, 1, 1), (1, 0, 0), (1, 1, 1), 1, True),
    ((2, 7, 3, 4, 5), (9, 7, 1, 1, 1), (1, 1, 1), (0, 0, 0), (1, 1, 1), 1, True),
    ((1, 8, 4, 6, 6), (12, 8, 1, 1, 1), (2, 2, 2), (0, 0, 0), (1, 1, 1), 1, False),
    # one input channel; depthwise, of one slice too; groups of whole texels and not
    ((1, 1, 5, 6, 9), (10, 1, 3, 3, 3), (1, 1, 1), (1, 1, 1), (1, 1, 1), 1, True),
    ((1, 1, 4, 6, 9), (6, 1, 1, 3, 3), (1, 1, 1), (0, 1, 1), (1, 1, 1), 1, True),
    ((2, 6, 5, 6, 7), (6, 1, 3, 3, 3), (1, 1, 1), (1, 1, 1), (1, 1, 1), 6, True),
    ((2, 6, 3, 6, 7), (6, 1, 1, 3, 3), (1, 2, 2), (0, 1, 1), (1, 1, 1), 6, False),
    ((1, 8, 4, 5, 6), (16, 4, 3, 2, 2), (1, 1, 1), (1, 0, 0), (1, 1, 1), 2, True),
    ((1, 6, 4, 5, 6), (8, 3, 2, 3, 3), (2, 1, 1), (0, 1, 1), (1, 1, 1), 2, True),
]
# .., output_padding
TRANSPOSED = [
    ((1, 4, 3, 4, 5), (4, 8, 3, 3, 3), (2, 2, 2), (1, 1, 1), (1, 1, 1), 1, True, (1, 1, 1)),
    ((2, 5, 3, 4, 4), (5, 6, 2, 3, 1), (1, 2, 3), (0, 1, 0), (1, 1, 1), 1, False, (0, 1, 2)),
    ((1, 6, 3, 4, 5), (6, 1, 3, 3, 3), (2, 1, 2), (1, 1, 0), (1, 2, 3), 6, True, (0, 0, 0)),
    ((1, 8, 2, 3, 4), (8, 3, 2, 2, 2), (2, 2, 2), (0, 0, 0), (1, 1, 1), 2, True, (0, 0, 0)),
    ((2, 4, 3, 4, 5), (4, 6, 1, 3, 3), (1, 2, 2), (0, 1, 1), (1, 1, 1), 1, True, (0, 1, 1)),
]


def _sample(row, transposed=False, clamp=(), computed=False):
    x, weight, stride, padding, dilation, groups, bias, *rest = row
    channels = weight[1] * groups if transposed else weight[0]
    numbers = normal(channels, seed=3) if bias else None

    def expect(*args):
        result = convolution(*args[:9])
        return np.clip(result, *args[9:]) if args[9:] else result

    name = "et_vk.conv_with_clamp.default" if clamp else "aten.convolution.default"
    return Sample(name, [normal(*x), normal(*weight, seed=1), numbers, list(stride), list(padding),
                         list(dilation), transposed, list(*rest or [(0, 0, 0)]), groups, *clamp],
                  expect, constants=() if computed else (1, 2), rtol=2e-6,
                  name=f"{x} {weight} {stride} {padding} {dilation} {groups}"
                       f"{' transposed' * transposed}{' computed' * computed}")


SAMPLES = [
    *map(_sample, PLAIN), *(_sample(row, transposed=True) for row in TRANSPOSED),
    _sample(PLAIN[0], clamp=(0, 0.5)), _sample(PLAIN[3], clamp=(0, 0.5)),
]
