"""One infinity or NaN in an input reaches the elements that depend on it, and no other.

Kernels read more than they use, e.g. whole texels of 4 where a window covers 3, and leave the rest
out by weights of zero; but 0 times NaN is NaN.
"""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from harness import Sample, make_case, merged, normal
from samples.convolution import convolution

from vkrt.memory.source import Source
from vkrt.method.method import Method
from vkrt.plan.options import LoadOptions

# Input channels, output channels, kernel, dilation
WINDOWS = list(product((1, 3, 6), (1, 5), ((3, 3), (1, 5), (2, 6), (4, 4)), (1, 2)))


def sample_of(inputs: int, channels: int, kernel: tuple[int, int], dilation: int,
              constants: tuple[int, ...], number: float) -> Sample:
    """A convolution whose input has `number` in its middle."""
    x = normal(1, inputs, 13, 14)
    x[0, 0, 6, 7] = number
    return Sample("aten.convolution.default",
                  [x, normal(channels, inputs, *kernel, seed=1), None, [1, 1], [1, 1],
                   [dilation] * 2, False, [0, 0], 1], convolution, constants=constants)


@pytest.mark.driver
@pytest.mark.parametrize("storage", ["buffer", "texel", "texture3d"])
@pytest.mark.parametrize("constants", [(1,), ()], ids=["constant", "dynamic"])
@pytest.mark.parametrize("number", [math.nan, math.inf], ids=str)
def test_convolutions(number, constants, storage, device):
    cases = [make_case(sample_of(*window, constants, number)) for window in WINDOWS]
    graph, data = merged(cases)
    method = Method(graph, [Source.wrap(data)], device, options=LoadOptions(storage=storage))
    try:
        results = method.execute([array for case in cases for array in case.inputs])
    finally:
        method.close()
    for window, case, result in zip(WINDOWS, cases, results, strict=True):
        expected = np.isfinite(case.expected[0])
        assert expected.any() and not expected.all()
        np.testing.assert_array_equal(np.isfinite(result), expected, err_msg=str(window))
