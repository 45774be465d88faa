"""Half precision is rounded to nearest even when it is stored, in every storage, whatever the
device's own conversions do.
"""

import numpy as np
import pytest
from harness import Sample, make_case, normal
from support import execute

from vkrt.device.policy import SWIFTSHADER


def run(sample: Sample, storage: str, device) -> np.ndarray:
    """The result of an operator as a program of its own."""
    return execute(*make_case(sample).program, device, storage=storage)[0]


def all_halves() -> np.ndarray:
    """Every half, as rows of 64."""
    return np.arange(1 << 16, dtype=np.uint16).view(np.float16).reshape(-1, 64)


def between_halves() -> np.ndarray:
    """Singles that tell the ways of rounding apart, as rows of 64.

    Every finite half, what lies half way to the next one and the numbers next to both, of either
    sign; what lies around the largest half; infinities, NaN and denormal singles.
    """
    halves = np.arange(0x7c00, dtype=np.uint16).view(np.float16).astype(np.float32)
    places = np.concatenate([halves, (halves[1:] + halves[:-1]) / 2,
                             np.float32([65520, 65536, 1e6, 3.4028235e38, 1e-40, 2**-149])])
    numbers = np.concatenate([places, np.nextafter(places, np.float32(np.inf)),
                              np.nextafter(places, np.float32(0)), np.float32([np.inf, np.nan])])
    numbers = np.concatenate([numbers, -numbers])
    return np.append(numbers, np.zeros(-numbers.size % 64, np.float32)).reshape(-1, 64)


def test_rounded_to_nearest_even(storage, device):
    """Bit for bit, denormal halves too; infinite from 65520 on; a zero keeps its sign."""
    numbers = between_halves()
    with np.errstate(over="ignore"):
        expected = numbers.astype(np.float16)
    result = run(Sample("aten._to_copy.default", [numbers], [expected], dtype="float16"), storage,
                 device)
    np.testing.assert_array_equal(np.isnan(result), np.isnan(expected))
    wrong = ~np.isnan(expected) & (result.view(np.uint16) != expected.view(np.uint16))
    assert not wrong.any(), (
        f"{wrong.sum()} of {numbers.size} are not the nearest half: "
        + ", ".join(f"{a!r} is {b!r}, not {c!r}" for a, b, c in
                    list(zip(numbers[wrong], result[wrong], expected[wrong]))[:5]))


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_read(dtype, storage, device):
    """Halves as they are read: a device may take denormal ones for zeros, and nothing else."""
    halves = all_halves()
    if storage == "texture3d" and device.info.driver_id == SWIFTSHADER:
        # Its half-precision images turn infinities into NaN.
        halves = np.where(np.isinf(halves), np.float16(1), halves)
    sample = (Sample("aten._to_copy.default", [halves], [halves.astype(dtype)], dtype=dtype)
              if dtype == "float32" else
              Sample("aten.permute_copy.default", [halves, [1, 0]], [halves.T], dtype=dtype))
    result = run(sample, storage, device)
    result = (result if dtype == "float32" else result.T).astype(np.float32)
    expected = halves.astype(np.float32)
    as_zero = (np.abs(expected) < 2.0**-14) & (result == 0)
    np.testing.assert_array_equal(result[~as_zero], expected[~as_zero])
    np.testing.assert_array_equal(np.signbit(result[as_zero]), np.signbit(expected[as_zero]))


def test_products_are_rounded_to_nearest(storage, device):
    """A product of halves is exact in single precision, so that its half is certain."""
    a, b = normal(1, 8, 9, 16) + 4, normal(1, 8, 9, 16, seed=1) + 4
    case = make_case(Sample("aten.mul.Tensor", [a, b], np.multiply), half=True)
    result, = execute(*case.program, device, storage=storage)
    x, y = (array.astype(np.float32) for array in case.inputs)
    np.testing.assert_array_equal(result, (x * y).astype(np.float16))
