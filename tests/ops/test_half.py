"""Half precision is rounded to nearest when it is stored, in every storage."""

from __future__ import annotations

import numpy as np
import pytest
from harness import Sample, make_case, normal

from vkrt.memory.source import Source
from vkrt.method import Method
from vkrt.options import LoadOptions


@pytest.mark.driver
@pytest.mark.parametrize("storage", ["texel", "buffer", "texture3d"])
def test_products_are_rounded_to_nearest(storage, device):
    """A product of halves is exact in single precision, so that its half is certain."""
    a, b = normal(1, 8, 9, 16) + 4, normal(1, 8, 9, 16, seed=1) + 4
    case = make_case(Sample("aten.mul.Tensor", [a, b], np.multiply), half=True)
    method = Method(case.graph, [Source.wrap(case.data)], device,
                    options=LoadOptions(storage=storage))
    try:
        result = method.execute(case.inputs)[0]
    finally:
        method.close()
    x, y = (array.astype(np.float32) for array in case.inputs)
    np.testing.assert_array_equal(result, (x * y).astype(np.float16))
