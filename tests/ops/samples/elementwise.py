"""Functions of one element, binary arithmetic with broadcasting, choice, conversion."""

import math

import numpy as np
from harness import Sample, booleans, integers, normal

INF, NAN = math.inf, math.nan

erf = np.vectorize(math.erf)
erfc = np.vectorize(math.erfc)

EDGES = np.array([0, -1, 1, 0.5, 1.5, 2.5, -2.5, 3, -3, 6, 20, -20, 100, -100, INF, -INF, NAN],
                 np.float32)


# For two arguments, zeros and infinities of either sign among them
SIGNS = np.array([0, -0.0, 1, -2, INF, -INF, 1e30, -1e30, NAN], np.float32)
# The ends of what int32 holds
INT_ENDS = np.array([-2**31, 1 - 2**31, 0, 2**31 - 1], np.int32)


def gelu(x, form="none"):
    if form == "tanh":
        return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3)))
    return 0.5 * x * erfc(-x / math.sqrt(2))


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def positive(*sizes):
    return np.exp(normal(*sizes, scale=3.0))


def erfinv(x):
    """By halving where erf, whose values near 1 doubles hold, comes to x."""
    low, high = np.full(x.shape, -6.0), np.full(x.shape, 6.0)
    for _ in range(60):
        middle = (low + high) / 2
        below = erf(middle) < x
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return np.where(abs(x) < 1, low, np.where(abs(x) == 1, x * INF, NAN))


@np.vectorize
def lgamma(x):
    is_pole = x == -INF or (x <= 0 and x == math.floor(x))
    return INF if is_pole else math.lgamma(x)


UNARY = {
    "abs": np.abs, "cos": np.cos, "sin": np.sin, "exp": np.exp, "neg": np.negative,
    "relu": lambda x: np.where(x < 0, 0, x), "sigmoid": sigmoid, "tanh": np.tanh,
    "hardswish": lambda x: x * np.clip(x + 3, 0, 6) / 6,
    "hardsigmoid": lambda x: np.clip(x + 3, 0, 6) / 6, "silu": lambda x: x * sigmoid(x),
    "round": np.round, "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc,
    "reciprocal": lambda x: 1 / x,
    "log1p": np.log1p, "expm1": np.expm1, "exp2": np.exp2, "tan": np.tan, "sinh": np.sinh,
    "cosh": np.cosh, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan,
    "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh, "erfinv": erfinv,
    "lgamma": lgamma,
    "mish": lambda x: x * np.tanh(np.log1p(np.exp(x))),
}
POSITIVE = {"sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x), "log": np.log, "log10": np.log10,
            "log2": np.log2}


def numbers(least, most):
    return np.linspace(least, most, 999, dtype=np.float32)


# Where rounding shows: function, where, numbers
SMALL, NEAR_1 = normal(500, scale=1e-3), 1 + normal(500, scale=0.01)
RANGES = [
    ("log", "near 1", NEAR_1), ("tanh", "small", SMALL), ("exp", "range", numbers(-87, 88)),
    ("log1p", "small", SMALL), ("expm1", "small", SMALL), ("exp2", "range", numbers(-126, 127)),
    ("log2", "near 1", NEAR_1), ("tan", "range", numbers(-1.5, 1.5)), ("sinh", "small", SMALL),
    ("sinh", "range", numbers(-89.4, 89.4)), ("cosh", "range", numbers(-89.4, 89.4)),
    ("asin", "range", numbers(-1, 1)), ("acos", "range", numbers(-1, 1)), ("atan", "small", SMALL),
    ("asinh", "small", SMALL), ("acosh", "range", numbers(1, 9)),
    ("atanh", "range", numbers(-1, 1)), ("mish", "range", numbers(-20, 20)),
    ("erfinv", "range", numbers(-1, 1)), ("erfinv", "small", SMALL),
    ("lgamma", "range", numbers(0.001, 40)), ("lgamma", "near 1", NEAR_1),
    ("lgamma", "near 2", 2 + normal(500, scale=0.01)), ("lgamma", "below 0", numbers(-8.99, -0.01)),
]

# Numbers where fmod and remainder turn, and quotients beyond fp32's whole numbers.
DIVIDENDS = np.array([5.5, -5.5, 0, 3, -3, 1e10, -7e18, 0.1, math.inf, 2.9999998, 1e-30],
                     np.float32)
ERF_X = np.concatenate([np.linspace(-5, 5, 400), [1e-6, 0.0]]).astype(np.float32)
ERF = np.array([math.erf(x) for x in ERF_X.astype(np.float64)])


def with_scalar(op, function, *rest, array=None, **options):
    return Sample(f"aten.{op}.Scalar", [normal(3, 5, 9) if array is None else array, *rest],
                  function, **options)


SAMPLES = [
    with_scalar("add", lambda x, v, a: x + a * v, 2.5, 3),
    with_scalar("sub", lambda x, v, a: x - a * v, 2.5, 1),
    with_scalar("rsub", lambda x, v, a: v - a * x, 2.5, 1),
    with_scalar("rsub", lambda x, v, a: v - a * x, 2, 3, name="alpha"),
    with_scalar("mul", lambda x, v: x * v, 0.35), with_scalar("div", lambda x, v: x / v, -1.7),
    *(with_scalar(name, function, 3, *rest, array=integers(4, 7), name="int32")
      for name, function, rest in (
          ("add", lambda x, v, a: x + a * v, [2]), ("sub", lambda x, v, a: x - a * v, [1]),
          ("rsub", lambda x, v, a: v - a * x, [2]), ("mul", lambda x, v: x * v, []),
          ("fmod", np.fmod, []), ("remainder", np.remainder, []))),
    with_scalar("remainder", np.remainder, -4, array=integers(4, 7), name="int32 negative"),
    *(with_scalar(name, function, number, array=DIVIDENDS, name=str(number), half=False)
      for name, function in (("fmod", np.fmod), ("remainder", np.remainder))
      for number in (3.0, -3.0, 0.75)),
    *(Sample(f"aten.{name}.Tensor", [normal(3, 5, 9, scale=9.0), normal(5, 1, seed=1)], function,
             half=False) for name, function in (("fmod", np.fmod), ("remainder", np.remainder))),
    *(Sample(f"aten.{name}.Tensor", [integers(30, low=-99, high=99), integers(30, low=1, seed=1)],
             function, name="int32")
      for name, function in (("fmod", np.fmod), ("remainder", np.remainder))),
    Sample("aten.sign.default", [np.append(normal(9), [0, math.nan]).astype(np.float32)], np.sign),
    Sample("aten.sign.default", [integers(9)], np.sign, name="int32"),
    Sample("aten.erf.default", [ERF_X], [ERF]),
    *(Sample(f"aten.{name}.default", [normal(2, 6, 5, 7, scale=3.0)], function)
      for name, function in UNARY.items()),
    *(Sample(f"aten.{name}.default", [positive(3, 5, 9)], function)
      for name, function in POSITIVE.items()),
    *(Sample(f"aten.{name}.default", [EDGES], function, name="edges", half=False)
      for name, function in {**UNARY, **POSITIVE}.items()
      if name not in ("sin", "cos", "hardswish", "silu")),
    *(Sample(f"aten.{name}.default", [normal(4000, scale=2000.0)], UNARY[name], name="far",
             half=False) for name in ("sin", "cos")),
    *(Sample(f"aten.{name}.default", [normal(999, scale=400.0)], UNARY[name], dtype="float16",
             rtol=5e-4, name="halves of float32", half=False) for name in ("sin", "cos")),
    # Halves have few numbers near 1, and many of these ranges end beyond the largest.
    *(Sample(f"aten.{name}.default", [x], {**UNARY, **POSITIVE}[name], name=where,
             half=where == "small") for name, where, x in RANGES),
    # Rounded once: a timestep of 1000 makes the error of a frequency a thousand times as large.
    Sample("aten.exp.default", [numbers(-9.25, 0)], np.exp, name="frequencies", rtol=1e-8),
    *(Sample(f"aten.{name}.default", [integers(3, 4, 5)], UNARY[name], name="int32")
      for name in ("abs", "neg", "relu")),
    Sample("aten.round.default", [integers(7)], lambda x: x, name="int32"),
    Sample("aten.clamp.default", [INT_ENDS, None, 5], lambda x, a, b: np.minimum(x, b),
           name="int32 ends"),
    Sample("aten.bitwise_not.default", [integers(5, 6)], np.invert, name="int32"),
    Sample("aten.neg.default", [normal()], np.negative, name="0-d"),
    Sample("aten.relu.default", [normal(1, 4, 6, 8)], UNARY["relu"], name="dense input"),
    Sample("aten.gelu.default", [normal(5, 33, scale=2.0), "none"], gelu),
    Sample("aten.gelu.default", [np.linspace(-5, 5, 801, dtype=np.float32), "none"], gelu,
           name="range"),
    Sample("aten.gelu.default", [normal(5, 33, scale=2.0), "tanh"], gelu, name="tanh"),
    *(Sample("aten.gelu.default",
             [np.array([INF, -INF, NAN, 20, 21, 1e5, 3e38, -1e5], np.float32), form], gelu,
             name=f"{form}, large") for form in ("none", "tanh")),
    Sample("aten.clamp.default", [normal(3, 7), -0.5, 1], lambda x, a, b: np.clip(x, a, b)),
    Sample("aten.clamp.default", [normal(3, 7), None, 0.25], lambda x, a, b: np.minimum(x, b),
           name="above"),
    Sample("aten.clamp.default", [normal(3, 7), 0.25, None], lambda x, a, b: np.maximum(x, a),
           name="below"),
    Sample("aten.clamp.default", [integers(3, 7), -2, None], lambda x, a, b: np.maximum(x, a),
           name="int32"),
    Sample("aten.hardtanh.default", [normal(4, 5, scale=4.0), 0, 6.0],
           lambda x, a, b: np.clip(x, a, b)),
    Sample("aten.hardshrink.default", [normal(4, 50), 0.5],
           lambda x, a: np.where(np.abs(x) <= a, 0, x)),
    Sample("aten.leaky_relu.default", [normal(4, 50), 0.125],
           lambda x, a: np.where(x < 0, x * a, x)),
    *(Sample("aten.elu.default", [x, alpha, scale, input_scale],
             lambda x, a, s, i: s * np.where(x > 0, x, a * np.expm1(i * x)),
             name=f"{len(x)} {alpha}", half=x is not EDGES)
      for x in (normal(40, 11, scale=3.0), EDGES)
      for alpha, scale, input_scale in ((1, 1, 1), (1.6732632423543772, 1.0507009873554805, 0.5))),
    *(Sample("aten.softplus.default", [x, beta, threshold],
             lambda x, b, t: np.where(x * b > t, x, np.log1p(np.exp(x * b)) / b),
             name=f"{len(x)} {beta}", half=x is not EDGES)
      for x in (normal(40, 11, scale=9.0), EDGES) for beta, threshold in ((1, 20), (2.5, 8))),
    *(Sample("aten.pow.Tensor_Scalar", [normal(6, 11), n], lambda x, n: x ** n, name=str(n))
      for n in (0, 1, 2, 3.0, 5)),
    *(Sample("aten.pow.Tensor_Scalar", [np.abs(normal(6, 11)) + 0.5, n], lambda x, n: x ** n,
             name=str(n)) for n in (-1, -2, 0.5, -0.5, 2.6, -1.3, 9)),
    Sample("aten.pow.Tensor_Scalar", [integers(6, 11), 3], lambda x, n: x ** n, name="int32"),
]


def binary(op, function, a, b, *rest, **options):
    return Sample(f"aten.{op}", [a, b, *rest], lambda x, y, *_: function(x, y), **options)


# Sizes that broadcast to each other, and why.
SHAPES = {
    "same": ((2, 6, 5, 7), (2, 6, 5, 7)),
    "channel": ((2, 6, 5, 7), (6, 1, 1)),
    "column": ((2, 6, 5, 7), (7,)),
    "plane": ((2, 6, 5, 7), (2, 1, 5, 7)),
    "scalar": ((2, 6, 5, 7), ()),
    "one": ((1,), (3, 5)),
    "outer product": ((6, 1), (1, 9)),
    "both": ((2, 1, 5, 1), (1, 6, 1, 7)),
    "many": ((2, 1, 3, 1, 2, 5), (1, 4, 1, 3, 2, 1)),
    "every other": ((2, 3, 2, 3, 2, 3), (1, 3, 1, 3, 1, 3)),
    "rank": ((3, 4, 8), (2, 1, 4, 8)),
    "0-d": ((), ()),
    "texels": ((1, 8, 4, 4), (1, 8, 1, 1)),
}

SAMPLES += [
    *(binary("sub.Tensor", np.subtract, normal(*a), normal(*b, seed=1), 1, name=name)
      for name, (a, b) in SHAPES.items()),
    *(binary("sub.Tensor", np.subtract, normal(*b), normal(*a, seed=1), 1,
             name=f"{name} swapped") for name, (a, b) in SHAPES.items()),
    *(binary("mul.Tensor", np.multiply, normal(*a), normal(*b, seed=1), constants=[1],
             name=f"{name} constant") for name, (a, b) in SHAPES.items()),
    *(binary("add.Tensor", np.add, integers(*a), integers(*b, seed=1), 1, name=f"{name} int32")
      for name, (a, b) in SHAPES.items() if name in ("same", "channel", "rank")),
    Sample("aten.add.Tensor", [normal(3, 5), normal(3, 5, seed=1), 0.5],
           lambda x, y, alpha: x + alpha * y, name="alpha"),
    Sample("aten.sub.Tensor", [integers(3, 5), integers(3, 5, seed=1), 3],
           lambda x, y, alpha: x - alpha * y, name="alpha int32"),
    binary("mul.Tensor", np.multiply, integers(5, 7), integers(7, seed=3), name="int32"),
    binary("mul.Tensor", np.logical_and, booleans(5, 7), booleans(5, 7, seed=3), name="bool"),
    binary("div.Tensor", np.divide, normal(2, 6, 5, 7), normal(6, 1, 1, seed=1)),
    *(binary(name, function, *arrays, name=of)
      for name, function in (("atan2.default", np.arctan2), ("hypot.default", np.hypot),
                             ("copysign.Tensor", np.copysign), ("fmax.default", np.fmax),
                             ("fmin.default", np.fmin))
      for of, arrays in (("", (normal(2, 6, 5, 7), normal(6, 1, 1, seed=1))),
                         ("texels", (normal(3, 8), normal(3, 8, seed=1))),
                         ("edges", (SIGNS, SIGNS[:, None].copy())))),
    *(binary(name, function, integers(6, 7), integers(7, seed=1), name="int32", dtype=dtype)
      for name, function, dtype in (("fmax.default", np.fmax, "int32"),
                                    ("fmin.default", np.fmin, "int32"),
                                    ("copysign.Tensor", np.copysign, "float32"))),
    binary("_prelu_kernel.default", lambda x, w: np.where(x > 0, x, x * w), normal(2, 6, 5, 7),
           normal(6, 1, 1, seed=1)),
    binary("minimum.default", np.minimum, normal(2, 6, 5, 7), normal(2, 6, 5, 7, seed=1)),
    binary("minimum.default", np.minimum, EDGES, EDGES[::-1].copy(), name="edges"),
    binary("minimum.default", np.minimum, integers(6, 7), integers(7, seed=1), name="int32"),
    binary("maximum.default", np.maximum, normal(2, 6, 5, 7), normal(2, 6, 5, 7, seed=1)),
    binary("maximum.default", np.maximum, EDGES, EDGES[::-1].copy(), name="edges"),
    binary("maximum.default", np.maximum, integers(6, 7), integers(7, seed=1), name="int32"),
    binary("pow.Tensor_Tensor", np.power, np.abs(normal(40, 9)) + 0.1, normal(9, scale=1.5)),
    binary("pow.Tensor_Tensor", np.power, integers(6, 9), integers(9, low=0, high=6), name="int32"),
    binary("pow.Tensor_Tensor", np.power,
           np.array([0, 0, 0, -2, -2, -2, INF, -INF, 1, NAN, 2, -1], np.float32),
           np.array([0, 1, -1, 3, 2, 0.5, -1, 3, NAN, 0, NAN, INF], np.float32), name="edges"),
    *(Sample("aten.div.Tensor_mode", [a, b, mode], function, name=f"{mode} {a.dtype}")
      for a, b in ((normal(9, 11, scale=9.0), normal(9, 11, seed=1)),
                   (integers(9, 11, low=-30, high=30), np.where(integers(9, 11, seed=1) == 0, 2,
                                                               integers(9, 11, seed=1))))
      for mode, function in (("floor", lambda x, y, _: np.floor(x / y)),
                             ("trunc", lambda x, y, _: np.trunc(x / y)))),
    # Quotients that are whole or nearly so.
    Sample("aten.div.Tensor_mode", [np.float32(np.arange(-30, 30)), np.float32([0.1]), "floor"],
           lambda x, y, _: np.floor(x / y), name="near whole", half=False),
]


def where(choice, a, b, **options):
    return Sample("aten.where.self", [choice, a, b], np.where,
                  dtype=options.pop("dtype", str(a.dtype)), **options)


CONVERTIBLE = {
    "float32": np.float32([0, 1.9, -1.9, 100.5, 0.25, 3, 7]),
    "int32": np.int32([0, 1, -1, 100, -100, 5, 6]),
    "uint8": np.uint8([0, 1, 2, 100, 127, 5, 6]),
    "int8": np.int8([0, 1, 2, 100, 127, 5, -6]),
    "bool": np.array([True, False, True, True, False, True, False]),
}


def converted(dtype):
    def convert(x, *_):
        return x != 0 if dtype == "bool" else x.astype("float64" if dtype == "float32" else dtype)
    return convert


SAMPLES += [
    where(booleans(2, 6, 5, 7), normal(2, 6, 5, 7), normal(2, 6, 5, 7, seed=1)),
    where(booleans(3, 9), integers(3, 9).astype(np.int8), integers(9, seed=1).astype(np.int8),
          name="int8"),
    where(booleans(2, 1, 5, 7), normal(6, 1, 1), normal(7, seed=1), name="broadcast"),
    where(booleans(1, 6, 1, 7), normal(2, 6, 5, 7), normal(seed=1), name="scalar", constants=[2]),
    where(booleans(3, 5), integers(3, 5), integers(5), name="int32"),
    where(booleans(3, 5), booleans(3, 5, seed=1), booleans(5, seed=2), name="bool"),
    where(booleans(2, 1, 3, 1, 5), normal(1, 4, 1, 6, 1), normal(2, 4, 3, 1, 5), name="many"),
    *(Sample(op, [np.resize(array, (2, 5, 3))], converted(dtype), dtype=dtype,
             name=f"{source} to {dtype}", half="float32" in (source, dtype))
      for op in ("dim_order_ops._to_dim_order_copy.default",)
      for source, array in CONVERTIBLE.items() for dtype in CONVERTIBLE
      if dtype != "uint8" or source not in ("float32", "int8", "int32")),
    Sample("aten._to_copy.default", [normal(3, 5), None], lambda x, _: x, dtype="float16",
           rtol=1e-3, half=False, name="to half"),
    Sample("aten._to_copy.default", [normal(3, 5).astype(np.float16), None], lambda x, _: x,
           dtype="float32", name="from half"),
]


def limited(function: str, expect, bounds) -> Sample:
    """Arithmetic and its clamp, as executorch 1.0 writes them."""
    def both(x, y, low, high):
        return np.clip(expect(x, y), -INF if low is None else low, INF if high is None else high)

    name = "-".join(map(str, bounds))
    return Sample(f"et_vk.binary_{function}_with_clamp.default",
                  [normal(2, 6, 5, 7), normal(6, 1, 1, seed=1), *bounds], both, name=name)


# Both bounds, those of a relu, one, none, and a pair that crosses: the upper one counts.
SAMPLES += [limited(function, expect, bounds)
            for function, expect in (("add", np.add), ("sub", np.subtract), ("mul", np.multiply),
                                     ("div", np.divide))
            for bounds in ((0, 0.75), (0.0, 1.797e308), (None, 0.5), (-0.5, None), (None, None),
                           (1.0, -1.0))]
