"""Host kernels that make every element from the elements at the same place."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from vkrt.host.kernels import kernel

UNARY: dict[str, Callable] = {
    "acos": np.arccos, "acosh": np.arccosh, "asin": np.arcsin, "asinh": np.arcsinh,
    "atan": np.arctan, "atanh": np.arctanh, "cosh": np.cosh, "exp2": np.exp2, "expm1": np.expm1,
    "isinf": np.isinf, "isnan": np.isnan, "log1p": np.log1p, "log2": np.log2, "sinh": np.sinh,
    "tan": np.tan,
}

BINARY: dict[str, Callable] = {
    "atan2.out": np.arctan2, "floor_divide.out": np.floor_divide,
    "bitwise_left_shift.Tensor_out": np.left_shift,
    "bitwise_right_shift.Tensor_out": np.right_shift,
}

for _name, _function in UNARY.items():
    kernel(f"aten::{_name}.out")(_function)
for _name, _function in BINARY.items():
    kernel(f"aten::{_name}")(_function)


for _name, _bits in (("and", np.bitwise_and), ("or", np.bitwise_or), ("xor", np.bitwise_xor)):
    kernel(f"aten::bitwise_{_name}.Scalar_out")(_bits)


@kernel("aten::div.Scalar_mode_out")
def divided(x, number, mode=None):
    quotient = np.floor_divide(x, number) if mode == "floor" else np.true_divide(x, number)
    return np.trunc(quotient) if mode == "trunc" else quotient


@kernel("aten::pow.Scalar_out")
def power(number, exponent):
    # To torch the number has the dtype of floats beside it.
    base = np.asarray(number).astype(exponent.dtype) if exponent.dtype.kind == "f" else number
    return np.power(np.float64(base), exponent)


@kernel("aten::clamp.Tensor_out")
def clamp(x, low=None, high=None):
    x = x if low is None else np.maximum(x, low)
    return x if high is None else np.minimum(x, high)


@kernel("aten::glu.out")
def gated(x, dim=-1):
    value, gate = np.split(x, 2, int(dim))
    return value / (1 + np.exp(-gate))


@kernel("aten::elu.out")
def elu(x, alpha=1, scale=1, input_scale=1):
    below = np.expm1(np.minimum(x, 0) * np.float32(input_scale)) * np.float32(alpha)
    return np.where(x > 0, x, below) * np.float32(scale)


@kernel("aten::masked_fill.Scalar_out")
def masked_fill(x, mask, value):
    return np.where(mask, np.asarray(value).astype(x.dtype), x)


@kernel("aten::tril.out")
def tril(x, diagonal=0):
    return np.tril(x, int(diagonal))


@kernel("aten::triu.out")
def triu(x, diagonal=0):
    return np.triu(x, int(diagonal))
