"""shaders/common/division.glsl is exact: on the device, and as a model of the least exact one."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from core_bench import STORAGE_BUFFER, opened_bench
from core_build import needs_build

from vkrt.work.records import HAS_FEW_TEXELS, IS_SMALL, LOCAL_SIZE, SMALL, Dispatch
from vkrt.work.tensor import Operand, Storage

COMMON = Path(__file__).parents[2] / "shaders" / "common"
LARGEST = 2**31 - 1
COUNT = 1 << 13

KERNEL = """#version 450
#extension GL_GOOGLE_include_directive : require
#include "division.glsl"
layout(local_size_x = 64) in;
layout(binding = 0) writeonly buffer Out { ivec2 result[]; };
layout(binding = 1) readonly buffer In { ivec2 numbers[]; };
void main() {
  uint i = gl_GlobalInvocationID.x;
  result[i] = divided(numbers[i].x, numbers[i].y);
}
"""


def pairs(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Dividends and divisors, many of them at or next to where a quotient changes."""
    rng = np.random.default_rng(seed)
    divisors = np.concatenate([
        (2 ** rng.uniform(0, 31, COUNT)).astype(np.int64), rng.integers(1, 5000, COUNT),
        2 ** rng.integers(0, 31, COUNT) + rng.integers(-1, 2, COUNT),
        LARGEST - rng.integers(0, 9, COUNT)]).clip(1, LARGEST)
    quotients = rng.integers(0, LARGEST // divisors + 1)
    near = quotients * divisors + rng.integers(-2, 3, divisors.size)
    last = LARGEST // divisors * divisors + rng.integers(-2, 3, divisors.size)
    anything = rng.integers(0, LARGEST + 1, divisors.size)
    ends = LARGEST - rng.integers(0, 300, divisors.size)
    small = (2 ** rng.uniform(0, 31, divisors.size)).astype(np.int64) - 1
    dividends = np.concatenate([near, last, anything, ends, small]).clip(0, LARGEST)
    return dividends, np.tile(divisors, 5)


@pytest.mark.driver
@needs_build
@pytest.mark.parametrize("is_small", [False, True])
def test_on_the_device(tmp_path, is_small):
    glslc = shutil.which("glslc")
    if glslc is None:
        pytest.skip("no glslc to compile the kernel with")
    source, module = tmp_path / "division.comp", tmp_path / "division.spv"
    source.write_text(KERNEL)
    subprocess.run([glslc, "-O", "--target-env=vulkan1.1", "-I", str(COMMON), str(source), "-o",
                    str(module)], check=True)
    a, b = pairs(0)
    if is_small:
        # At and next to where a quotient changes, up to the last number that is small.
        b = np.minimum(b, np.where(np.arange(b.size) % 2, 2 * SMALL, LARGEST))
        near = (a // b % (SMALL // b + 1) * b + np.arange(b.size) % 3 - 1).clip(0, SMALL - 1)
        a = np.where(np.arange(b.size) % 5, near, SMALL - 1 - np.arange(b.size) % 300)
    numbers = np.stack([a, b], axis=1).astype(np.int32)
    with opened_bench() as bench:
        given = bench.host_buffer(numbers.tobytes())
        result = bench.host_buffer(bytes(numbers.nbytes))
        pipeline = bench.pipeline(module.read_bytes(), [STORAGE_BUFFER, STORAGE_BUFFER],
                                  constants=[(IS_SMALL, is_small)])
        bench.run(pipeline, (result, given), (len(numbers) // 64, 1, 1))
        found = np.frombuffer(result.read(), np.int32).reshape(-1, 2)
    np.testing.assert_array_equal(found, np.stack([a // b, a % b], axis=1))


def moved(x: np.ndarray, by: np.ndarray) -> np.ndarray:
    """Floats, each as many steps away from zero as `by` says; zero stays."""
    steps = np.where(x == 0, 0, by).astype(np.int32)
    return (x.view(np.int32) + steps).view(np.float32)


@pytest.mark.parametrize("error", [-1, 0, 1, None])
def test_model(error):
    """`divided` where every step is as wrong as Vulkan lets it be, or at random."""
    a, b = pairs(1)
    rng = np.random.default_rng(2)

    def off(x: np.ndarray, most: int) -> np.ndarray:
        by = (rng.integers(-most, most + 1, x.shape) if error is None
              else np.full(x.shape, error * most))
        return moved(x.astype(np.float32), by)

    def converted(n: np.ndarray) -> np.ndarray:
        exact = n.astype(np.float32)
        return np.where(exact.astype(np.int64) == n, exact, off(exact, 1))

    # 2.5 units in the last place are 3 steps at most.
    scale = off(np.float32(1) / converted(b), 3)
    q = np.minimum(off(converted(a) * scale, 1), np.float32(2147483520)).astype(np.int64)
    rest = a - q * b
    assert rest.min() >= -(2**31) and rest.max() <= LARGEST
    more = np.trunc(off(converted(rest) * scale, 1)).astype(np.int64)
    q, rest = q + more, rest - more * b
    step = (rest >= b).astype(int) - (rest < 0)
    np.testing.assert_array_equal(q + step, a // b)
    np.testing.assert_array_equal(rest - step * b, a % b)


@pytest.mark.parametrize("error", [-1, 0, 1])
def test_model_of_small_numbers(error):
    """The same of the one step that numbers below `SMALL` take, with all divisors that matter."""
    b = np.concatenate([np.arange(1, 3000), np.arange(3000, 2 * SMALL, 997), [2**24, LARGEST]])
    # 2.5 units of the last place of 1 / b, as far as there is a float. A product is rounded well.
    wide = 1 / b.astype(np.float32).astype(float)
    furthest = wide + error * 2.5 * 2.0 ** (np.floor(np.log2(wide)) - 23)
    scale = furthest.astype(np.float32)
    scale = np.where((scale - furthest) * error > 0, np.nextafter(scale, np.float32(-error)), scale)
    for last in (SMALL - 1, SMALL // 2, 1 << 20, 5000):
        for beside in (-1, 0):
            a = (last // b * b + beside).clip(0, SMALL - 1)
            q = ((a.astype(np.float32) + np.float32(0.5)) * scale).astype(np.int64)
            np.testing.assert_array_equal(q, a // b)


def test_what_is_small():
    """By invocations and by elements or texels of operands; matrices of weights do not count."""
    def found(invocations: int, elements: int, **options) -> tuple[bool, bool]:
        operand = Operand(Storage(0, "activation", 4 * elements, "float32"), (elements // 4, 4),
                          "float32", (0, 1), **options)
        constants = Dispatch(0, "any", (), (operand,), (), invocations, 64, (1, 1, 1)).constants
        return constants[IS_SMALL - LOCAL_SIZE], constants[HAS_FEW_TEXELS - LOCAL_SIZE]

    below = SMALL // 4 * 4 - 4
    assert found(SMALL - 1, below) == (True, True)
    assert found(SMALL, below) == (False, False)
    assert found(1, below + 8) == (False, True)
    assert found(1, 4 * below) == (False, True)
    assert found(1, 4 * SMALL) == (False, False)
    assert found(1, 8 * SMALL, rows=1) == (True, True)
