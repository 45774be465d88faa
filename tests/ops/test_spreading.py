"""One infinity or NaN in the input of a convolution reaches what depends on it, and nothing else.

Kernels read more than they use, e.g. whole texels of 4 where a window covers 3, and leave the rest
out by weights of zero; but 0 times NaN is NaN. Winograd's transforms mix the pixels of a tile, so
they are off here. For all other operators test_ops.py looks for NaN where it should not be.
"""

import math
from itertools import product

import numpy as np
from harness import SPREADING, Sample, Variant, grouped, in_images, merged, normal
from samples.convolution import convolution
from support import open_method

from vkrt.device.policy import target_of

# Input channels, output channels, kernel, dilation
WINDOWS = list(product((1, 3, 6), (1, 5), ((3, 3), (1, 5), (2, 6), (4, 4)), (1, 2)))
NUMBERS = (math.nan, math.inf)


def sample_of(inputs: int, channels: int, kernel: tuple[int, int], dilation: int,
              constants: tuple[int, ...], number: float) -> Sample:
    """A convolution whose input has `number` in its middle."""
    x = normal(1, inputs, 13, 14)
    x[0, 0, 6, 7] = number
    return Sample("aten.convolution.default",
                  [x, normal(channels, inputs, *kernel, seed=1), None, [1, 1], [1, 1],
                   [dilation] * 2, False, [0, 0], 1], convolution, constants=constants,
                  name=f"{inputs} to {channels} of {kernel} by {dilation}")


def windows_with(number: float) -> list[Variant]:
    """Windows with constant weights and with computed ones."""
    return [Variant(sample_of(*window, constants, number), False, "plain")
            for constants in ((1,), ()) for window in WINDOWS]


def test_convolutions(storage, device):
    samples = grouped()[SPREADING]
    if storage == "texture3d":
        samples = in_images(samples, False, device.info, target_of(device.info, storage))
    graph, data, _ = merged([variant.case() for variant in (*windows_with(0.0), *samples)])
    with open_method(graph, data, device, storage=storage, winograd="off") as method:
        for number in NUMBERS:
            windows = windows_with(number)
            spoiled = [*windows, *(variant.spoiled(number) for variant in samples)]
            cases = [variant.case() for variant in spoiled]
            results = method.execute([array for case in cases for array in case.inputs])
            for place, (case, result) in enumerate(zip(cases, results, strict=True)):
                expected = np.isfinite(case.expected[0])
                if place < len(windows):
                    assert expected.any() and not expected.all()
                np.testing.assert_array_equal(np.isfinite(result), expected,
                                              err_msg=f"{number}: {spoiled[place]}")
