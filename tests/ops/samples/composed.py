"""Samples of operators that are others one after the other, and of parts of tensors."""

import math

import numpy as np
from harness import Sample, booleans, integers, normal, of_each_dtype, small

INF, NAN = math.inf, math.nan
LARGEST = float(np.finfo(np.float32).max)
I32 = np.int32

# What is divided so that quotients are whole, halves, infinite or no number
DIVIDENDS = np.array([7, -7, 7.5, -0.5, 0, 6, -6, 1e9, INF, -INF, NAN], np.float32)


def divided(x, number, mode):
    if mode is None:
        return x / number
    quotient = np.floor_divide(x, number) if mode == "floor" else np.trunc(x / number)
    return quotient.astype(x.dtype)


def clamped(x, low, high):
    x = x if low is None else np.maximum(x, low)
    return x if high is None else np.minimum(x, high)


def gated(x, dim):
    value, gate = np.split(x, 2, dim)
    return value / (1 + np.exp(-gate))


def filled(x, mask, value):
    return np.where(mask, np.asarray(value).astype(x.dtype), x)


def ldexp(x, exponent):
    power = np.exp2(exponent.astype(np.float64))
    return x * np.where(power > LARGEST, INF, power)


def logit(x, epsilon):
    x = x if epsilon is None else np.clip(x, epsilon, 1 - epsilon)
    return np.log(x / (1 - x))


def shifted(x, by, left):
    return x << by if left else x >> by


def stack_sample(arrays, dim, name=""):
    return Sample("aten.stack.default", [arrays, dim], np.stack, rtol=0,
                  name=f"{arrays[0].shape} {dim} {name}")


def part_sample(name, array, *args, expect, label="", **options):
    return Sample(name, [array, *args], expect, rtol=0,
                  name=f"{array.shape} {' '.join(map(str, args))} {label}", **options)


def unbound(x, dim):
    return list(np.moveaxis(x, dim or 0, 0))


def split(x, size, dim):
    return [np.take(x, range(first, min(first + size, x.shape[dim])), dim)
            for first in range(0, x.shape[dim], size)]


def narrowed(x, dim, start, length):
    start %= x.shape[dim]
    return np.take(x, range(start, start + length), dim)


def diagonal(x, offset, dim1, dim2):
    return np.diagonal(x, offset or 0, dim1 or 0, 1 if dim2 is None else dim2)


def replaced(x, source, dim, index):
    result = x.copy()
    np.moveaxis(result, dim, 0)[index] = source
    return result


def unshuffled(x, factor):
    *outer, channels, height, width = x.shape
    split_ = x.reshape(*outer, channels, height // factor, factor, width // factor, factor)
    n = len(outer)
    moved = split_.transpose(*range(n + 1), n + 2, n + 4, n + 1, n + 3)
    return moved.reshape(*outer, channels * factor**2, height // factor, width // factor)


# Results that fit into 32 bits; PyTorch's integers have 64, of which those beyond are gone here.
SHIFTED, BY = integers(6, 5, low=-2**20, high=2**20), integers(6, 5, low=0, high=11)
FAR = [np.array([-5, 5, 7, -7], I32), np.array([40, 64, -1, 99], I32)]

def grid_priors(x, stride, offset):
    rows, columns = np.indices(x.shape[-2:]).reshape(2, -1)
    return (np.stack([columns, rows], -1) + offset) * stride


SAMPLES = [
    *(Sample("aten.copysign.Scalar", [array, number], np.copysign, dtype="float32",
             name=f"{array.dtype} {number}", half=array is not DIVIDENDS)
      for array in (DIVIDENDS, integers(5, 7)) for number in (2.5, -0.0)),
    Sample("aten.ldexp.Tensor", [normal(5, 7), integers(7, low=-140, high=140)], ldexp,
           name="int32", half=False),
    Sample("aten.ldexp.Tensor", [normal(5, 1), normal(7, scale=3.0)], ldexp, rtol=2e-6),
    Sample("aten.ldexp.Tensor", [DIVIDENDS, DIVIDENDS[::-1].copy()], ldexp, name="edges",
           half=False),
    *(Sample("aten.round.decimals", [normal(5, 7, scale=300.0), decimals],
             lambda x, n: np.round(x * 10.0**n) / 10.0**n, name=str(decimals), half=False)
      for decimals in (0, 2, -2)),
    Sample("aten.round.decimals", [np.float32([0.25, 0.75, -0.25, INF, -INF, NAN, 2.5, 0]), 1],
           lambda x, n: np.round(x * 10) / 10, name="ties"),
    *(Sample("et_vk.grid_priors.default", [normal(*sizes), stride, offset], grid_priors,
             name=f"{sizes} {stride} {offset}")
      for sizes, stride, offset in (((1, 3, 4, 6), 8, 0.5), ((5, 7), 16, 0.0), ((1, 1), 3, -2.25))),
    Sample("aten.floor_divide.default", [integers(5, 7), integers(7, low=1)], np.floor_divide,
           name="int32"),
    Sample("aten.floor_divide.default", [normal(5, 7, scale=9.0), normal(5, 1, seed=2)],
           np.floor_divide, half=False),
    *(Sample("aten.div.Scalar_mode", [DIVIDENDS, number, mode], divided, half=False,
             name=f"{number} {mode}")
      for number in (2, -0.5, 3) for mode in ("floor", "trunc", None)),
    *(Sample("aten.div.Scalar_mode", [integers(30, low=-99, high=99), number, mode], divided,
             name=f"int32 {number} {mode}") for number in (7, -3) for mode in ("floor", "trunc")),
    Sample("aten.div.Scalar_mode", [integers(30), 4, None], divided, dtype="float32",
           name="int32 None"),
    Sample("aten.div.Scalar_mode", [np.float32([-LARGEST, LARGEST]), -LARGEST, "floor"],
           [np.float32([1, -1])], name="largest"),
    *(Sample("aten.pow.Scalar", [base, normal(5, 7)], np.power, rtol=1e-5, name=str(base))
      for base in (2, 0.3, 10000.0)),
    Sample("aten.pow.Scalar", [LARGEST, np.float32([1, 0.5, -0.5])], np.power, name="largest",
           rtol=1e-5, half=False),
    Sample("aten.pow.Scalar", [3, integers(9, low=0, high=9)], np.power, dtype="int32",
           name="int32"),
    *(Sample(f"aten.bitwise_{name}.Scalar", [array, number], function, name=f"{array.dtype}")
      for name, function in (("and", np.bitwise_and), ("or", np.bitwise_or),
                             ("xor", np.bitwise_xor))
      for array, number in ((integers(5, 7), 6), (booleans(5, 7), True))),
    *(Sample(f"aten.{name}.Tensor", [SHIFTED, BY],
             lambda x, by, left=left: shifted(x, by, left))
      for name, left in (("bitwise_left_shift", True), ("bitwise_right_shift", False),
                         ("__lshift__", True), ("__rshift__", False))),
    Sample("aten.bitwise_left_shift.Tensor", [SHIFTED, BY + 64], [SHIFTED * 0], name="beyond"),
    Sample("aten.bitwise_right_shift.Tensor", FAR, [np.array([-1, 0, 0, -1], I32)], name="beyond"),
    *(Sample(f"aten.{name}", [SHIFTED, 3], lambda x, by, left=left: shifted(x, by, left))
      for name, left in (("bitwise_left_shift.Tensor_Scalar", True),
                         ("bitwise_right_shift.Tensor_Scalar", False),
                         ("__lshift__.Scalar", True), ("__rshift__.Scalar", False))),
    Sample("aten.clamp.Tensor", [normal(4, 5, 7), normal(5, 1), normal(7) + 1], clamped),
    Sample("aten.clamp.Tensor", [normal(4, 5, 7), None, normal(1, 7)], clamped, name="above"),
    Sample("aten.clamp.Tensor", [integers(5, 7), integers(5, 1), None], clamped, name="int32"),
    *(Sample("aten.glu.default", [normal(*sizes), dim], gated, name=f"{sizes} {dim}")
      for sizes, dim in (((2, 6, 5, 7), 1), ((3, 10), -1), ((3, 5, 8), 2), ((4, 3), 0))),
    *(Sample("aten.masked_fill.Scalar", [array, booleans(*mask), -3], filled, rtol=0,
             name=f"{name} {mask}")
      for name, array in of_each_dtype(2, 3, 5).items() if name not in ("uint8", "bool")
      for mask in ((2, 3, 5), (3, 1))),
    Sample("aten.masked_fill.Scalar", [small(3, 5), booleans(3, 5), 7], filled, name="uint8"),
    Sample("aten.masked_fill.Scalar", [booleans(3, 5), booleans(5), 1], filled, name="bool"),
    # Masks are made with finfo.min.
    *(Sample("aten.masked_fill.Scalar", [normal(3, 5), booleans(3, 5), value], filled, half=False,
             rtol=0, name=str(value)) for value in (-LARGEST, -INF, 1e300)),
    Sample("aten.logit.default", [1 / (1 + np.exp(-normal(5, 7, scale=3.0))), None], logit,
           rtol=1e-5, half=False),
    Sample("aten.logit.default", [np.float32([-1, 0, 0.05, 0.5, 0.97, 1, 2]), 0.1], logit,
           rtol=1e-5, name="limited"),
    Sample("aten.logit.default", [np.float32([-1, 0, 0.5, 1, 2]), None], logit, half=False,
           rtol=1e-5, name="ends"),
    *(stack_sample([array, array[::-1].copy()], dim, name)
      for name, array in of_each_dtype(3, 5).items() for dim in (0, 1, -1)),
    stack_sample([normal(2, 3, 4, seed=s) for s in range(5)], 1),
    stack_sample([normal(), normal(seed=1)], 0),
    stack_sample([normal(2, 4, 3, 5)], 2, "one"),
    *(part_sample("aten.unbind_copy.int", array, dim, expect=unbound, label=name)
      for name, array in of_each_dtype(3, 4, 5).items() for dim in (0, 1, -1)),
    part_sample("aten.unbind_copy.int", normal(1, 5), 0, expect=unbound),
    *(part_sample("aten.split_copy.Tensor", array, size, dim, expect=split, label=name)
      for name, array in of_each_dtype(5, 6, 7).items()
      for size, dim in ((2, 0), (4, 1), (3, -1), (9, 1))),
    *(part_sample("aten.narrow_copy.default", array, dim, start, length, expect=narrowed,
                  label=name)
      for name, array in of_each_dtype(5, 6, 7).items()
      for dim, start, length in ((0, 1, 3), (1, -4, 3), (-1, 2, 5), (2, 3, 0))),
    *(part_sample("aten.diagonal_copy.default", array, offset, dim1, dim2, expect=diagonal,
                  label=name)
      for name, array in of_each_dtype(4, 6, 5).items()
      for offset, dim1, dim2 in ((None, None, None), (1, 1, 2), (-2, 0, -1), (2, -1, 0))),
    part_sample("aten.diagonal_copy.default", normal(4, 5), 9, 0, 1, expect=diagonal),
    *(part_sample(f"aten.{name}.default", array, diagonal_, label=label,
                  expect=lambda x, d, f=function: f(x, d or 0))
      for name, function in (("tril", np.tril), ("triu", np.triu))
      for label, array in of_each_dtype(2, 5, 7).items() for diagonal_ in (None, 1, -3, 99)),
    *(part_sample(f"aten.{name}.default", np.full((5, 8), -INF, np.float32), 1, half=False,
                  expect=lambda x, d, f=function: f(x, d), label="infinite")
      for name, function in (("tril", np.tril), ("triu", np.triu))),
    *(part_sample("aten.select_scatter.default", array, np.take(array, 0, dim), dim, 2,
                  expect=replaced, label=name)
      for name, array in of_each_dtype(3, 6, 7).items() for dim in (0, 1, 2)),
    part_sample("aten.select_scatter.default", normal(3, 8), normal(3), -1, -2, expect=replaced),
    *(part_sample("aten.pixel_unshuffle.default", array, 2, expect=unshuffled, label=name)
      for name, array in of_each_dtype(2, 3, 6, 8).items()),
    part_sample("aten.pixel_unshuffle.default", normal(4, 6, 9), 3, expect=unshuffled),
    *(Sample("aten.var_mean.correction", [normal(3, 5, 7), dims, correction, keep],
             lambda x, d, c, k: [x.var(None if d is None else tuple(d), ddof=c, keepdims=k),
                                 x.mean(None if d is None else tuple(d), keepdims=k)],
             rtol=1e-5, name=f"{dims} {correction} {keep}")
      for dims, correction, keep in (([1], 1, True), ([0, 2], 0, False), (None, 1, False))),
    *(Sample("aten.mean.default", [normal(*sizes), None], lambda x, _: x.mean(), rtol=1e-5,
             name=str(sizes)) for sizes in ((3, 5, 7), (), (9,))),
]
