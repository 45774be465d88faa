"""Samples of pooling: padding, ceil_mode, divisors, strides left out, indices."""

import math
from dataclasses import replace

import numpy as np
from harness import Sample, by, integers, normal

from samples.pooling_any import avg_pool, max_pool, max_pool_with_indices

# sizes, kernel, stride (an empty one is the kernel), padding, dilation, ceil_mode
MAX = [
    ((1, 6, 8, 8), [2, 2], [], [0, 0], [1, 1], False),
    ((2, 5, 9, 11), [3, 3], [2, 2], [1, 1], [1, 1], False),
    ((1, 4, 7, 10), [3, 2], [2, 3], [1, 0], [1, 1], True),
    ((1, 9, 12, 12), [2, 3], [1, 1], [0, 1], [2, 3], False),
    ((3, 7, 7), [3, 3], [2, 2], [0, 0], [1, 1], True),
    # a dilation of a single row, which it does not move
    ((1, 4, 5, 9), [1, 2], [1, 1], [0, 1], [1000000007, 1], False),
]

# sizes, kernel, stride, padding, ceil_mode, count_include_pad, divisor
AVG = [
    ((1, 6, 8, 8), [2, 2], [], [0, 0], False, True, None),
    ((2, 5, 9, 11), [3, 3], [2, 2], [1, 1], False, True, None),
    ((2, 5, 9, 11), [3, 3], [2, 2], [1, 1], False, False, None),
    ((1, 4, 8, 10), [3, 2], [2, 3], [1, 1], True, True, None),
    ((1, 4, 8, 10), [3, 2], [2, 3], [1, 1], True, False, None),
    ((1, 4, 6, 6), [3, 3], [3, 3], [1, 1], True, True, 5),
    ((3, 7, 7), [7, 7], [1, 1], [0, 0], False, True, None),
]


def _max(x, numbers) -> Sample:
    return Sample("aten.max_pool2d.default", [x, *numbers], max_pool, name=_name(x, numbers))


def _max_with_indices(x, numbers) -> Sample:
    args = [x, *numbers]
    dtype = str(x.dtype)
    # Rounding to fp16 makes elements equal; both sides then name the first.
    sizes = np.shape(max_pool(*args))
    return Sample("aten.max_pool2d_with_indices.default", args, max_pool_with_indices,
                  outs=[(sizes, dtype), (sizes, "int32")], name=_name(x, numbers))


def _name(x, numbers) -> str:
    sizes = by(x.shape)
    return f"{x.dtype} {sizes}-" + "-".join(str(n).replace(" ", "") for n in numbers)


def whole(sizes, dtype) -> np.ndarray:
    """Whole numbers; the first picture has the least of them only."""
    limits = np.iinfo(dtype)
    numbers = integers(*sizes, low=limits.min, high=limits.max).astype(dtype)
    numbers[0] = limits.min
    return numbers


# All elements of some windows are -infinity; equal elements.
HOLE = np.zeros((1, 2, 8, 8), np.float32)
HOLE[:, :, :5] = -math.inf

SAMPLES = [
    *(_max(normal(*sizes), numbers) for sizes, *numbers in MAX),
    *(_max_with_indices(normal(*sizes), numbers) for sizes, *numbers in MAX),
    *(make(whole(sizes, dtype), numbers) for make in (_max, _max_with_indices)
      for dtype in (np.int8, np.uint8, np.int32) for sizes, *numbers in MAX),
    # Not in fp16: SwiftShader packs infinities as NaN.
    replace(_max(HOLE, MAX[0][1:]), half=False),
    _max_with_indices(np.ones((1, 2, 8, 8), np.float32), MAX[0][1:]),
    *(Sample("aten.avg_pool2d.default", [normal(*sizes), *numbers], avg_pool,
             name=_name(np.empty(sizes), numbers)) for sizes, *numbers in AVG),
]
