"""Sums, means and extremes over dimensions; softmax."""

import math

import numpy as np
from harness import Sample, integers, normal


def reduced(function):
    def expect(x, dims, keepdim, *_):
        axis = tuple(dims) if dims else None
        return function(x, axis=axis, keepdims=keepdim)
    return expect


def with_nan(*sizes):
    array = normal(*sizes)
    array[..., 1] = math.nan
    return array


def positive(*sizes):
    return np.abs(normal(*sizes))


SIZES = (2, 6, 5, 7)
SETS = [[0], [1], [2], [3], [2, 3], [1, 2], [0, 3], [1, 3], [-1, -2], [0, 2], [0, 2, 3],
        [0, 1, 2, 3], [], None]
FUNCTIONS = {"mean.dim": np.mean, "sum.dim_IntList": np.sum, "amax.default": np.max,
             "amin.default": np.min}
ARGS = {"argmax": np.argmax, "argmin": np.argmin}


def arg_sample(name, array, dim, keepdim, label="", **options):
    return Sample(f"aten.{name}.default", [array, dim, keepdim],
                  lambda x, d, k: ARGS[name](x, axis=d, keepdims=k), dtype="int32",
                  name=f"{list(array.shape)} {dim} {keepdim}{label}", **options)


def both(name, array, dim, keepdim, **options):
    """The extreme along a dimension and its index."""
    values, indices = {"max": (np.max, np.argmax), "min": (np.min, np.argmin)}[name]
    sizes = values(array, axis=dim, keepdims=keepdim).shape
    return Sample(f"aten.{name}.dim", [array, dim, keepdim],
                  lambda x, d, k: [values(x, axis=d, keepdims=k), indices(x, axis=d, keepdims=k)],
                  outs=[(sizes, str(array.dtype)), (sizes, "int32")],
                  name=f"{list(array.shape)} {dim} {keepdim}", **options)


def softmax(x, dim, _=False):
    shifted = np.exp(x - x.max(dim, keepdims=True)) if x.ndim else np.ones(())
    return shifted / shifted.sum(dim, keepdims=True) if x.ndim else shifted


def log_softmax(x, dim, _=False):
    shifted = x - x.max(dim, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(dim, keepdims=True))


def masked(value, *sizes):
    """Numbers of which `value` takes the place of all of index 0 and of every other of index 1."""
    x = normal(*sizes, scale=3.0)
    x[0] = value
    x[1].flat[::2] = value
    return x


def masked_samples():
    """Rows masked wholly and partly. To torch wholly masked ones are the mean where the mask is the
    least finite number (in half precision it is -inf), and NaN where it is -inf."""
    least = float(np.finfo(np.float32).min)
    for name, function in (("_softmax", softmax), ("_log_softmax", log_softmax)):
        for value in (least, -math.inf):
            for sizes, dim in (((3, 9), 1), ((3, 7, 6), 1), ((3, 9002), 1), ((3, 2500, 5), 1)):
                yield Sample(f"aten.{name}.default", [masked(value, *sizes), dim, False], function,
                             name=f"{value} {sizes}")


def any_samples(name, function):
    rare = np.random.default_rng(3).random((2, 6, 5, 7)) < (0.1 if name == "any" else 0.9)
    yield from (Sample(f"aten.{name}.dim", [rare, dim, keepdim],
                       lambda x, d, k: function(x, axis=d, keepdims=k), dtype="bool",
                       name=f"{dim} {keepdim}") for dim in range(4) for keepdim in (False, True))
    yield from (Sample(f"aten.{name}.dims", [rare, dims, keepdim],
                       lambda x, d, k: function(x, axis=None if d is None else tuple(d),
                                                keepdims=k), dtype="bool", name=f"{dims} {keepdim}")
                for dims in ([0, 2], [-1, 1], None) for keepdim in (False, True))
    yield Sample(f"aten.{name}.default", [rare], function, dtype="bool")
    yield Sample(f"aten.{name}.default", [np.ones((), bool)], function, dtype="bool", name="0-d")
    yield Sample(f"aten.{name}.dim", [np.round(normal(5, 9)), 1, False],
                 lambda x, d, k: function(x, axis=d, keepdims=k), dtype="bool", name="floats",
                 half=False)


def variance(x, dims, correction, keepdim):
    correction = 1 if correction is None else correction
    return np.var(x, axis=tuple(dims) if dims else None, ddof=correction, keepdims=keepdim)


SAMPLES = [
    *(Sample("aten.var.correction", [normal(2, 6, 5, 7) + np.float32(9), dims, correction, keepdim],
             variance, name=f"{dims} {correction} {keepdim}", rtol=2e-6, half=False)
      for dims, correction, keepdim in (([1], 1, False), ([3], 0, True), ([2, 3], None, True),
                                        (None, 2, False), ([0, 1], 0.5, False))),
    *(Sample("aten.var.dim", [normal(3, 5, 9), [1], unbiased, False], variance, name=str(unbiased))
      for unbiased in (True, False)),
    *(Sample("aten.var.correction", [np.full(sizes, 3, np.float32), [0], 1, False],
             lambda *_: np.array(math.nan), name=f"of nothing {sizes}") for sizes in ((1,), ())),
    *any_samples("any", np.any), *any_samples("all", np.all),
    *(Sample(f"aten.{name}", [normal(*SIZES), dims, keepdim], reduced(function),
             name=f"{dims} {keepdim}", rtol=2e-6)
      for name, function in FUNCTIONS.items() for dims in SETS for keepdim in (False, True)),
    # Long ones, in two stages; the sums of positive numbers lose most when done one by one.
    *(Sample(f"aten.{name}", [positive(*sizes), dims, True], reduced(function),
             name=f"long {sizes} {dims}", half=name != "sum.dim_IntList")
      for name, function in FUNCTIONS.items()
      for sizes, dims in (((1, 6, 61, 67), [2, 3]), ((1, 3, 50001), [2]), ((2, 9001), [1]),
                          ((9001, 3), [0]), ((3, 70, 70, 5), [0, 1, 2, 3]))),
    Sample("aten.mean.dim", [normal(2, 3, 2, 3, 2, 3, 2), [0, 2, 4, 6], False], reduced(np.mean),
           name="every other"),
    Sample("aten.amax.default", [normal(2, 3, 2, 3, 2, 3, 3), [0, 2, 4, 6], False],
           reduced(np.max), name="every other"),
    Sample("aten.amin.default", [normal(2, 3, 2, 3, 2, 3, 2), [1, 3, 5], True], reduced(np.min),
           name="every other"),
    Sample("aten.amax.default", [with_nan(3, 5), [1], False], reduced(np.max), name="NaN"),
    Sample("aten.amax.default", [-positive(3, 5), [1], False], reduced(np.max), name="negative"),
    Sample("aten.amin.default", [positive(3, 5), [0, 1], False], reduced(np.min), name="positive"),
    Sample("aten.sum.dim_IntList", [normal(), [], False, None], reduced(np.sum), name="0-d"),
    *(Sample(f"aten.{name}", [integers(3, 5, 7), dims, False], reduced(FUNCTIONS[name]),
             name=f"int32 {dims}")
      for name in ("sum.dim_IntList", "amax.default", "amin.default") for dims in ([2], [0, 1])),
    *(Sample(f"aten.{name}.default", [integers(3, 5, 7, low=low).astype(dtype), dims, False],
             reduced(FUNCTIONS[f"{name}.default"]), name=f"{dtype} {dims}")
      for name in ("amax", "amin") for dtype, low in (("int8", -100), ("uint8", 3))
      for dims in ([1], [0, 2])),
    *(Sample(f"aten.{name}.default", [integers(3, 5, 7) > 5, [1], False],
             reduced(FUNCTIONS[f"{name}.default"]), name="bool") for name in ("amax", "amin")),
    # Whether an element is not 0, or all are not, though the sum and the product are.
    Sample("aten.sum.dim_IntList", [np.array([[1, -1], [0, 0]], np.int32), [1], False, None],
           [np.array([True, False])], dtype="bool", name="of truth"),
    Sample("aten.prod.dim_int", [np.array([[0.5, 0.25], [1, 0]], np.float32), 1, False, None],
           [np.array([True, False])], dtype="bool", name="of truth"),
    Sample("aten.sum.dim_IntList", [integers(3, 5, 7) > 0, [2], False, None],
           reduced(np.sum), dtype="int32", name="bool"),
    *(arg_sample(name, normal(2, 6, 5, 7), dim, keepdim)
      for name in ARGS for dim in (0, 1, -1, 3) for keepdim in (False, True)),
    *(arg_sample(name, integers(2, 600, 7), dim, True, " int32")
      for name in ARGS for dim in (1, 2)),
    arg_sample("argmax", with_nan(3, 5), 1, False, " NaN"),
    arg_sample("argmax", np.round(normal(3, 50)), 1, False, " ties"),
    arg_sample("argmax", normal(3, 5, 6), None, False),
    *(both(name, normal(2, 6, 5, 7), dim, keepdim)
      for name in ("max", "min") for dim, keepdim in ((1, False), (-1, True), (2, False))),
    both("max", integers(4, 9), 0, True),
    both("min", with_nan(3, 5), 1, True),
    *(Sample("aten.prod.dim_int", [positive(*sizes) + np.float32(0.5), dim, keepdim, None],
             lambda x, d, k, _: np.prod(x, axis=d, keepdims=k), rtol=3e-6, half=sizes[-1] < 100,
             name=f"{sizes} {dim} {keepdim}")
      for sizes, dim, keepdim in (((3, 5, 7), 1, False), ((3, 5, 7), -1, True),
                                  ((2, 9, 4), 0, True), ((1, 150), 1, False))),
    Sample("aten.prod.default", [integers(3, 5, low=1, high=4), None], lambda x, _: x.prod(),
           name="int32"),
    Sample("aten.prod.default", [positive(2, 3, 3)], lambda x: x.prod(), rtol=3e-6),
    # In parts.
    arg_sample("argmin", normal(1, 30000), 1, False, half=False),
    arg_sample("argmax", normal(3, 50_257), 1, False, half=False),
    arg_sample("argmax", normal(5, 20_002), -1, True, " whole", half=False),
    arg_sample("argmin", integers(2, 2500, 6), 1, True, " parts"),
    arg_sample("argmax", integers(2, 9001), 1, False, " ties in parts"),
    arg_sample("argmax", with_nan(1, 8200), 1, False, " NaN in parts"),
    *(Sample("aten._softmax.default", [normal(*sizes, scale=3.0), dim, False], softmax,
             name=f"{sizes} {dim}")
      for sizes, dim in (((3, 5), -1), ((3, 8), 1), ((2, 6, 5, 7), 1), ((2, 6, 5, 7), 0),
                         ((2, 6, 5, 7), 2), ((2, 6, 5, 7), -1), ((1, 1000), 1), ((5,), 0),
                         ((1, 8001), 1), ((2, 3000, 2), 1))),
    Sample("aten._softmax.default", [normal(3, 5) * 1e4, 1, False], softmax, name="far",
           half=False),
    Sample("aten._softmax.default", [np.where(normal(4, 9) < 0, -np.inf, normal(4, 9)).astype(
        np.float32), 1, False], softmax, name="masked"),
    *(Sample("aten._log_softmax.default", [normal(*sizes, scale=3.0), dim, False], log_softmax,
             name=f"{sizes} {dim}")
      for sizes, dim in (((3, 5), -1), ((2, 6, 5, 7), 1), ((2, 6, 5, 7), 2), ((2, 6, 5, 7), 3))),
    # Few long rows, in parts.
    *(Sample(f"aten.{name}.default", [normal(*sizes, scale=3.0), dim, False], function,
             name=f"parts {sizes} {dim}")
      for name, function in (("_softmax", softmax), ("_log_softmax", log_softmax))
      for sizes, dim in (((2, 9001), 1), ((3, 2500, 5), 1))),
    # More than one invocation may walk over.
    Sample("aten._softmax.default", [normal(1, 100_003, scale=3.0), 1, False], softmax,
           name="very long", half=False),
    Sample("aten._softmax.default", [normal(20_003, 1), 0, False], softmax, name="very long lanes",
           half=False),
    Sample("aten._softmax.default", [np.where(np.arange(9002) % 4096 < 4090, -np.inf, normal(
        2, 9002)).astype(np.float32), 1, False], softmax, name="masked parts"),
    Sample("aten._softmax.default", [with_nan(2, 8200), 1, False], softmax, name="NaN in parts"),
    *masked_samples(),
]
