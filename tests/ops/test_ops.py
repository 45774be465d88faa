"""Every sample of every operator on the driver, against numpy.

Two ways of running them: all samples of an operator as one program whose sizes are push constants,
which is fast enough for every storage, precision and memory order on every driver; and each sample
as a program of its own, with its sizes compiled into the pipelines, a part of them by
VKRT_TEST_SEED.
"""

from __future__ import annotations

import numpy as np
import pytest
from gaps import PATTERNS, check_weights, run_over
from harness import Variant, check, grouped, is_finite, merged, variants
from support import DEPTH, QUICK, RUN, SEED, STORAGES

from vkrt.device.policy import SWIFTSHADER, target_of
from vkrt.memory.source import Source
from vkrt.method.method import Method
from vkrt.ops.lowering import lower
from vkrt.plan.options import LoadOptions

PLAIN = [v for v in variants() if not v.half and v.layout == "plain"]
GROUPS = grouped()
EVERY = 3 if DEPTH == "full" else 72


def _groups() -> list:
    """(group, storage): fp16 and other layouts are left out where they show nothing new.

    At a depth of "turn" every second group runs, in one storage, and of those in fp16 or other
    layouts every fourth; at "quick" in another storage, and of them a run under the validation
    layer takes one third, and one without it another. VKRT_TEST_SEED says which.
    """
    def varied(key) -> bool:
        return key[1] or key[2] != "plain"

    def runs(number: int, key, storage: str) -> bool:
        if DEPTH == "full":
            return storage != "buffer" or not varied(key)
        if QUICK:
            if (number + RUN) % 2 and varied(key) or number // 6 % 3 != RUN:
                return False
        elif (number + RUN) % (4 if varied(key) else 2):
            return False
        return storage == STORAGES[(number + RUN) % 3]

    return [pytest.param(key, storage, id="-".join((key[0], "half" if key[1] else "single", key[2],
                                                    storage)))
            for number, key in enumerate(GROUPS, SEED) for storage in STORAGES
            if runs(number, key, storage)]


def fits_images(variant: Variant, device) -> bool:
    """Whether the sample's program needs no buffers instead of images: one that does would send
    all samples it shares a program with to buffers."""
    return not lower(variant.case().graph, target_of(device.info, "texture3d")).notes


# Not marked `driver`: compiling samples takes minutes, once has to do.
@pytest.mark.parametrize("variant", PLAIN[SEED % EVERY::EVERY], ids=str)
def test_specialized(variant: Variant, device):
    case = variant.case()
    method = Method(case.graph, [Source.wrap(case.data)], device,
                    options=LoadOptions(specialize="all"))
    try:
        check(method.execute(case.inputs), case)
    finally:
        method.close()


@pytest.mark.driver
@pytest.mark.parametrize(("key", "storage"), _groups())
@pytest.mark.usefixtures("apart")
def test_all_samples(key, storage: str, device):
    group = [v for v in GROUPS[key] if storage != "texture3d" or fits_images(v, device)]
    if key[1] and storage == "texture3d" and device.info.driver_id == SWIFTSHADER:
        # Its half-precision images turn infinities into NaN.
        group = [v for v in group if is_finite(v.case())]
    if not group:
        pytest.skip("no sample fits this device's images")
    cases = [variant.case() for variant in group]
    graph, data = merged(cases)
    method = Method(graph, [Source.wrap(data)], device,
                    options=LoadOptions(storage=storage))
    try:
        check_weights(method)
        inputs = [array for case in cases for array in case.inputs]
        first, second = (run_over(pattern, method, inputs) for pattern in PATTERNS)
        for a, b in zip(first, second):
            np.testing.assert_array_equal(a, b, err_msg="results change with what the memory held")
    finally:
        method.close()
    results = iter(first)
    for variant, case in zip(group, cases):
        try:
            check([next(results) for _ in case.expected], case)
        except AssertionError as error:
            raise AssertionError(f"{variant}: {error}") from error
