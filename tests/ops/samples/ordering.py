"""Samples of sorting, of the largest few, and of running sums and products."""

import math

import numpy as np
from harness import Sample, booleans, integers, normal

# Infinities, equal elements, zeros of either sign, no numbers
STRANGE = np.array([2, math.nan, -math.inf, 0, 2, math.inf, -0.0, math.nan, 1], np.float32)


def order(x, dim, descending):
    if not descending:
        return np.argsort(x, dim, kind="stable")
    turned = np.argsort(np.flip(x, dim), dim, kind="stable")
    return x.shape[dim] - 1 - np.flip(turned, dim)


def ordered(x, dim, descending, count=None):
    line = np.atleast_1d(x)
    places = np.take(order(line, dim, descending), range(
        line.shape[dim] if count is None else count), dim)
    values = np.take_along_axis(line, places, dim)
    return [values.reshape(()), places.reshape(())] if x.ndim == 0 else [values, places]


def sample(op, array, args, expect, **options):
    values, places = (np.shape(r) for r in expect(array, *args))
    dtype = str(array.dtype)
    return Sample(op, [array, *args], expect, outs=[(values, dtype), (places, "int32")], rtol=0,
                  name=f"{array.shape} {dtype} {args}", **options)


def sort(x, dim=-1, descending=False):
    return ordered(x, dim, descending)


def topk(x, k, dim=-1, largest=True, _sorted=True):
    return ordered(x, dim, largest, k)


def running(function):
    return lambda x, dim, _dtype=None: function(
        np.atleast_1d(x).astype(np.int64 if x.dtype.kind in "bui" else x.dtype), dim).reshape(
            x.shape)


def scan_sample(name, array, dim, **options):
    return Sample(f"aten.{name}.default", [array, dim, None],
                  running(np.cumsum if name == "cumsum" else np.cumprod), rtol=2e-6,
                  name=f"{array.shape} {dim} {array.dtype}", **options)


def arrays(*sizes):
    return (normal(*sizes), integers(*sizes, low=-3, high=3),
            integers(*sizes, low=0).astype(np.uint8), integers(*sizes).astype(np.int8))


def apart(array):
    """Different numbers of the same dtype: which of equal ones the largest few are is open."""
    numbers = np.random.default_rng(array.size).permutation(array.size).reshape(array.shape)
    return numbers.astype(array.dtype)


SAMPLES = [
    *(sample("aten.sort.default", array, [dim, descending], sort)
      for array in (*arrays(5, 7), booleans(5, 6), integers(3, 6, 8), normal(2, 3, 4, 5))
      for dim in (-1, 0, 1) for descending in (False, True)),
    *(sample("aten.sort.default", array, [-1, descending], sort, half=False)
      for array in (STRANGE, normal(300), np.array(2.5, np.float32), normal(3, 1), normal(3, 0))
      for descending in (False, True)),
    *(sample("aten.sort.stable", array, [True, 1, descending],
             lambda x, _stable, *args: sort(x, *args))
      for array in (integers(4, 9, low=-2, high=2), np.round(normal(4, 9)))
      for descending in (False, True)),
    *(sample("aten.topk.default", apart(array), [k, dim, largest, True], topk)
      for array in (*arrays(5, 7), normal(2, 6, 8)) for k, dim in ((3, -1), (5, 0), (1, 1))
      if k <= array.shape[dim] for largest in (True, False)),
    sample("aten.topk.default", STRANGE[:7], [2, 0, True, True], topk, half=False),
    sample("aten.topk.default", normal(4, 1000), [10, 1, True, True], topk, half=False),
    sample("aten.topk.default", np.array(7, np.int32), [1, 0, True, True], topk),
    sample("aten.topk.default", normal(4, 6), [0, 1, True, True], topk),
    *(scan_sample("cumsum", array, dim)
      for array in (normal(5, 7), integers(5, 7), normal(3, 6, 8), normal(2, 3, 4, 5))
      for dim in (-1, 0, 1)),
    scan_sample("cumsum", np.abs(normal(3, 1000)), 1),
    scan_sample("cumsum", np.abs(normal(300, 3)), 0),
    *(scan_sample("cumsum", array, 1, dtype="int32") for array in (booleans(3, 9),)),
    *(scan_sample("cumprod", array, dim) for array in (normal(5, 7), 1 + normal(3, 90, scale=0.1),
                                                       integers(5, 7, low=-2, high=3))
      for dim in (0, 1)),
    *(scan_sample(name, array, 0) for name in ("cumsum", "cumprod")
      for array in (np.array(4, np.int32), np.array(2.5, np.float32), normal(0, 3))),
]
