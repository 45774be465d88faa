"""Numbers at the ends of what floats hold, given to every operator that takes one."""

import math

import numpy as np
import pytest
from harness import Sample, make_case, merged
from number_samples import NUMBERS, OPERATORS, Operator, agrees, expectations
from support import execute

from vkrt.device.policy import SWIFTSHADER
from vkrt.errors import UnsupportedError
from vkrt.lowering.lowering import lower
from vkrt.work.target import Target

DTYPES = {"single": np.float32, "half": np.float16}
FILLS = [operator for operator in OPERATORS if "full" in operator.op]


def program_of(operator: Operator, dtype: type):
    """An operator with each of its numbers: a graph, the bytes of its constants, its inputs."""
    cases = []
    for number in operator.numbers:
        # The first expectation gives the sizes.
        expected = next(expectations(operator, number, dtype))
        outs = [(sizes, operator.dtype or "float32") for sizes in (expected.shape, *operator.more)]
        sample = Sample(operator.op, operator.args(number), lambda *_, e=expected: e, outs=outs,
                        constants=operator.constants)
        cases.append(make_case(sample, half=dtype == np.float16))
    return merged(cases)


def run(operator: Operator, dtype: type, storage: str, specialize: str, device):
    return execute(*program_of(operator, dtype), device, storage=storage, specialize=specialize)


@pytest.mark.parametrize("storage", ["texel", "texture3d"])
@pytest.mark.parametrize("precision", DTYPES)
@pytest.mark.parametrize("operator", OPERATORS, ids=str)
def test_numbers(operator: Operator, precision: str, storage: str, device):
    if (precision, storage) == ("half", "texture3d") and device.info.driver_id == SWIFTSHADER:
        pytest.skip("its half-precision images turn infinities into NaN")
    dtype = DTYPES[precision]
    results = run(operator, dtype, storage, "few", device)
    wrong = []
    for number, result in zip(operator.numbers, results):
        candidates = list(expectations(operator, number, dtype))
        found = agrees(result, candidates, dtype)
        wrong += [f"{number!r}: element {tuple(map(int, place))} is {result[tuple(place)]!s}, "
                  f"expected {sorted({str(c[tuple(place)]) for c in candidates})}"
                  for place in np.argwhere(~found)]
    assert not wrong, "\n".join([f"{len(wrong)} wrong", *wrong[:20]])


@pytest.mark.parametrize("specialize", ["none", "all"])
@pytest.mark.parametrize("operator", FILLS, ids=str)
def test_filled_bits(operator: Operator, specialize: str, device):
    """A number that is only moved arrives as it is: the sign of a zero and denormals too."""
    for number, result in zip(NUMBERS, run(operator, np.float32, "texel", specialize, device)):
        with np.errstate(over="ignore"):
            expected = np.full_like(result, number)
        np.testing.assert_array_equal(np.isnan(result), np.isnan(expected))
        if number == number:
            np.testing.assert_array_equal(result.view(np.int32), expected.view(np.int32),
                                          err_msg=f"{number!r}")


def test_convolutions_with_bounds_that_are_no_numbers():
    """The exporter could make them of a clamp, whose result torch says is NaN everywhere."""
    convolution = next(o for o in OPERATORS if o.op == "et_vk.conv_with_clamp.default")
    expected = next(expectations(convolution, 0.0, np.float32))
    case = make_case(Sample(convolution.op, convolution.args(math.nan), [expected],
                            dtype="float32", constants=convolution.constants))
    with pytest.raises(UnsupportedError, match="bounds nan and inf"):
        lower(case.graph, Target())
