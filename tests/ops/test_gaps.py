"""The gaps between activations show kernels that are told wrong sizes."""

from contextlib import ExitStack

import numpy as np
import pytest
from gaps import PATTERNS, check_gaps, check_weights, fill, memory_of, run_over
from harness import Sample, make_case, normal
from support import need_one_memory, open_method

from vkrt.device.policy import SWIFTSHADER
from vkrt.lowering.context import Lowering
from vkrt.method.method import Method

# The result has 2 * 3 texels.
ABS = Sample("aten.abs.default", [normal(3, 5)], np.abs)
WITH_WEIGHT = Sample("aten.add.Tensor", [normal(3, 5), normal(3, 5, seed=1), 1],
                     lambda a, b, _alpha: a + b, constants=[1])


@pytest.fixture
def method(apart, device):
    """Loads the program of a sample in a storage: (method, inputs); closed at the end."""
    with ExitStack() as stack:
        def load(storage: str = "buffer", sample: Sample = ABS) -> tuple[Method, list[np.ndarray]]:
            case = make_case(sample)
            loaded = stack.enter_context(
                open_method(case.graph, case.data, device, storage=storage))
            if not list(memory_of(loaded)):
                pytest.skip("the host does not see this device's memory")
            return loaded, case.inputs

        yield load


@pytest.fixture
def wrong(monkeypatch):
    """Has the kernels of a shader told another number in the place of one of their parameters."""
    dispatch = Lowering.dispatch

    def tell(wanted: str, index: int, number: int) -> None:
        def told(self, shader, params, *others, **named):
            params = list(params)
            if shader == wanted:
                params[index] = number
            dispatch(self, shader, params, *others, **named)
        monkeypatch.setattr(Lowering, "dispatch", told)
    return tell


def test_activations_lie_apart(method):
    loaded, inputs = method()
    fill(loaded, PATTERNS[0])
    np.testing.assert_array_equal(run_over(PATTERNS[0], loaded, inputs)[0], np.abs(inputs[0]))
    places = sorted((p.offset, p.end) for _, block in memory_of(loaded) for p in block.places)
    assert len(places) > 1
    assert all(end + 4096 <= start for (_, end), (start, _) in zip(places, places[1:]))


def test_a_byte_beyond_a_result_is_named(method, device):
    need_one_memory(device)
    loaded, _ = method()
    fill(loaded, PATTERNS[0])
    check_gaps(loaded, PATTERNS[0])
    step = next(s for s in loaded.work.steps if s.shader.startswith("unary"))
    number = step.writes[0].storage.id
    for memory, block in memory_of(loaded):
        for place in block.places:
            if place.storage == number:
                memory.write(place.offset + loaded.work.storages[number].nbytes + 9, b"\0")
    with pytest.raises(AssertionError, match=f"bytes 8 to 12 beyond storage {number} "
                                             r".*unary\.buffer\.f32 of node 0 \(aten\.abs"):
        check_gaps(loaded, PATTERNS[0])


def test_a_byte_beyond_a_weight_is_named(method, device):
    need_one_memory(device)
    loaded, inputs = method(sample=WITH_WEIGHT)
    check_weights(loaded)
    run_over(PATTERNS[1], loaded, inputs)
    (number, gap), = loaded._loaded._weights[0].gaps()
    gap[3] = 0
    with pytest.raises(AssertionError, match=f"bytes 12 to 16 beyond storage {number}, a weight"):
        check_gaps(loaded, PATTERNS[1])


@pytest.mark.parametrize("storage", ["buffer", "texel"])
def test_a_kernel_that_writes_beyond_its_result_is_found(method, wrong, storage, device):
    if device.info.driver_id != SWIFTSHADER:
        pytest.skip("this driver may drop writes beyond a buffer")
    wrong("unary", 0, 5)  # X, which is 3
    loaded, inputs = method(storage)
    with pytest.raises(AssertionError, match="beyond storage .*unary"):
        run_over(PATTERNS[0], loaded, inputs)


@pytest.mark.parametrize("storage", ["buffer", "texel"])
def test_a_kernel_that_leaves_out_some_of_its_result_is_found(method, wrong, storage):
    wrong("copy", 7, 3)  # the texels of the result: it has 4
    loaded, inputs = method(storage)
    first, second = (run_over(pattern, loaded, inputs)[0] for pattern in PATTERNS)
    assert not np.array_equal(first, second, equal_nan=True)


# Reads of texels beyond a view give zeros there as well.
def test_a_kernel_that_reads_beyond_its_operand_is_found(method, wrong, device):
    if device.info.driver_id != SWIFTSHADER:
        pytest.skip("this driver may read zeros beyond a buffer")
    wrong("copy", 11, 40)  # the first element of the source, which has 15
    loaded, inputs = method("buffer")
    first, second = (run_over(pattern, loaded, inputs)[0] for pattern in PATTERNS)
    assert np.isnan(first).all() and not np.isnan(second).any()
