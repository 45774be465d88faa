"""Samples of pooling over one and three spatial dimensions, and over windows that cover all."""

import itertools
import math
from dataclasses import replace

import numpy as np
from harness import Sample, by, normal


def pool_size(size: int, kernel: int, stride: int, padding: int, dilation: int, ceil: bool) -> int:
    """Pixels of a pooling's result: a last window has to start inside the image or its left pad."""
    span = size + 2 * padding - dilation * (kernel - 1) - 1
    count = (-(-span // stride) if ceil else span // stride) + 1
    return count - 1 if ceil and (count - 1) * stride >= size + padding else count


def windows(sizes, kernel, stride, padding, dilation, ceil):
    """Sizes of the result, and a function that gives the window along a side of a place there."""
    stride = stride or kernel
    out = tuple(pool_size(*numbers, ceil) for numbers in
                zip(sizes[-len(kernel):], kernel, stride, padding, dilation))

    def window(side, place):
        first = place * stride[side] - padding[side]
        return [first + k * dilation[side] for k in range(kernel[side])]

    return out, window


def adaptive(sizes, out):
    def window(side, place):
        size = sizes[side - len(out)]
        return range(place * size // out[side], -(-(place + 1) * size // out[side]))

    return tuple(out), window


def slid(x, out, window, function):
    """What `function` makes of the elements inside of every window and of all its places."""
    count = len(out)
    sizes = x.shape[-count:]
    results = []
    for place in np.ndindex(*out):
        sides = [window(side, n) for side, n in enumerate(place)]
        inside = [[n for n in side if 0 <= n < size] for side, size in zip(sides, sizes)]
        results.append(function(x, inside, sides, sizes))
    return np.stack(results, -1).reshape(*x.shape[:-count], *out)


def _taken(x, inside):
    for side, places in enumerate(inside):
        x = np.take(x, places, side - len(inside))
    return x.reshape(*x.shape[:-len(inside)], -1)


def largest(x, inside, _sides, _sizes):
    return _taken(x, inside).max(-1)


def place_of_largest(x, inside, _sides, sizes):
    places = np.array([np.ravel_multi_index(spot, sizes) for spot in itertools.product(*inside)])
    return places[_taken(x, inside).argmax(-1)]


def max_pool(x, kernel, stride=(), padding=None, dilation=None, ceil=False):
    padding, dilation = padding or [0] * len(kernel), dilation or [1] * len(kernel)
    return slid(x, *windows(x.shape, kernel, stride, padding, dilation, ceil), largest)


def max_pool_with_indices(x, kernel, stride, padding, dilation, ceil):
    found = windows(x.shape, kernel, stride, padding, dilation, ceil)
    return [slid(x, *found, largest), slid(x, *found, place_of_largest)]


def avg_pool(x, kernel, stride=(), padding=None, ceil=False, include=True, divisor=None):
    padding = padding or [0] * len(kernel)

    def mean(x, inside, sides, sizes):
        padded = [[n for n in side if n < size + pad]
                  for side, size, pad in zip(sides, sizes, padding)]
        count = math.prod(map(len, padded if include else inside))
        return _taken(x, inside).sum(-1) / (divisor or count)

    return slid(x, *windows(x.shape, kernel, stride, padding, [1] * len(kernel), ceil), mean)


def adaptive_max_pool(x, out):
    found = adaptive(x.shape, out)
    return [slid(x, *found, largest), slid(x, *found, place_of_largest)]


def adaptive_avg_pool(x, out):
    return slid(x, *adaptive(x.shape, out), lambda x, inside, *_: _taken(x, inside).mean(-1))


def sample(op, expect, x, *args, outs=None, **options):
    name = f"{by(x.shape)}-" + "-".join(str(n).replace(" ", "") for n in args)
    return Sample(f"aten.{op}.default", [x, *args], expect, outs=outs, name=name, **options)


def with_indices(op, expect, x, *args):
    sizes = expect(x, *args)[0].shape
    return sample(op, expect, x, *args, outs=[(sizes, "float32"), (sizes, "int32")])


# sizes, kernel, stride, padding, dilation, ceil_mode
MAX = {
    1: [((2, 6, 15), [3], [2], [1], [1], False), ((5, 14), [2], [], [0], [3], True)],
    3: [((1, 6, 5, 7, 9), [3, 3, 3], [2, 2, 2], [1, 1, 1], [1, 1, 1], False),
        ((2, 4, 4, 6, 5), [1, 2, 2], [1, 2, 2], [0, 0, 0], [1, 1, 1], True),
        ((3, 6, 7, 5), [2, 3, 2], [], [1, 0, 1], [2, 2, 1], False)],
}
# sizes, kernel, stride, padding, ceil_mode, count_include_pad, divisor
AVG = {
    1: [((2, 6, 15), [3], [2], [1], True, False), ((5, 14), [2], [], [0], False, True),
        ((1, 4, 9), [4], [3], [2], True, True)],
    3: [((1, 6, 5, 7, 9), [3, 3, 3], [2, 2, 2], [1, 1, 1], False, True, None),
        ((2, 5, 4, 6, 5), [2, 3, 2], [2, 1, 2], [1, 1, 0], True, False, None),
        ((3, 6, 7, 5), [2, 2, 2], [], [0, 0, 0], True, True, 5)],
}
# sizes, output_size
ADAPTIVE = {
    1: [((2, 6, 15), [4]), ((5, 14), [14]), ((1, 4, 9), [1])],
    2: [((1, 6, 12, 10), [3, 4]), ((2, 5, 7, 7), [5, 3]), ((4, 9, 8), [1, 1]),
        ((1, 4, 3, 5), [7, 6])],
    3: [((1, 6, 5, 7, 9), [2, 3, 4]), ((4, 4, 6, 5), [1, 1, 1]), ((2, 4, 2, 6, 5), [1, 7, 5])],
}
# All elements of some windows are -infinity; equal elements; no number.
HOLE = np.zeros((1, 2, 4, 6, 8), np.float32)
HOLE[:, :, :2] = -math.inf
STRANGE = normal(1, 2, 4, 6, 8)
STRANGE[0, 0, 1, 2, 3], STRANGE[0, 1, 2, 2, 2] = math.nan, math.inf


def _of(count):
    for sizes, *numbers in MAX[count]:
        yield sample(f"max_pool{count}d", max_pool, normal(*sizes), *numbers)
        yield with_indices(f"max_pool{count}d_with_indices", max_pool_with_indices,
                           normal(*sizes), *numbers)
    for sizes, *numbers in AVG[count]:
        yield sample(f"avg_pool{count}d", avg_pool, normal(*sizes), *numbers)


def _adaptive(count):
    averages = [f"adaptive_avg_pool{count}d"] + [f"_adaptive_avg_pool{count}d"] * (count > 1)
    for sizes, out in ADAPTIVE[count]:
        yield with_indices(f"adaptive_max_pool{count}d", adaptive_max_pool, normal(*sizes), out)
        # Its indices are not read.
        x = normal(*sizes)
        whole = np.zeros(adaptive_max_pool(x, out)[0].shape)
        yield replace(sample(f"adaptive_max_pool{count}d", lambda *a: adaptive_max_pool(*a)[:1], x,
                             out, outs=[(whole.shape, "float32"), (whole.shape, "int32")]),
                      name=f"{sizes} {out} without indices")
        for name in averages:
            yield sample(name, adaptive_avg_pool, normal(*sizes), out)


HALVES = [2, 2, 2], [2, 2, 2], [0, 0, 0], [1, 1, 1], False

SAMPLES = [
    *_of(1), *_of(3), *_adaptive(1), *_adaptive(2), *_adaptive(3),
    replace(with_indices("max_pool3d_with_indices", max_pool_with_indices, HOLE, *HALVES),
            half=False),
    replace(sample("max_pool3d", max_pool, STRANGE, *HALVES), half=False),
    replace(sample("adaptive_max_pool3d", lambda *a: adaptive_max_pool(*a)[:1], STRANGE, [2, 3, 4],
                   outs=[((1, 2, 2, 3, 4), "float32"), ((1, 2, 2, 3, 4), "int32")]), half=False),
    with_indices("max_pool3d_with_indices", max_pool_with_indices,
                 np.ones((1, 2, 4, 6, 8), np.float32), *HALVES),
]
