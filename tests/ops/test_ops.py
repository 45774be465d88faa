"""Every sample of every operator on the driver, against numpy."""

from __future__ import annotations

import numpy as np
import pytest
from harness import Variant, check, variants

from vkrt.memory import Source
from vkrt.method import Method

pytestmark = pytest.mark.driver

STORAGES = ("texel", "buffer", "texture3d")


def _runs() -> list:
    """(variant, storage): fp16 and other layouts are left out where they show nothing new."""
    return [pytest.param(variant, storage, id=f"{variant}-{storage}")
            for variant in variants() for storage in STORAGES
            if storage != "buffer" or not (variant.half or variant.layout != "plain")]


@pytest.mark.parametrize(("variant", "storage"), _runs())
def test_sample(variant: Variant, storage: str, device):
    case = variant.case()
    method = Method(case.graph, [Source.wrap(case.data)], device, storage=storage,
                    order="lazy")
    try:
        first = method.execute(case.inputs)
        check(first, case)
        # A second run finds its memory used.
        for a, b in zip(first, method.execute(case.inputs)):
            np.testing.assert_array_equal(a, b, err_msg="the second run differs")
    finally:
        method.close()
