"""Quantization of real numbers and back, and the rules of scales and zeros.

A whole number q of 8 bits stands for (q - zero) * scale. Quantized tensors have 8 bits for each
element in memory, 4 elements a word. The numbers are computed as shaders/common/q8.glsl says.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from vkrt.errors import UnsupportedError
from vkrt.ops.dtypes import FLOATS, Allowed, DtypeRule
from vkrt.ops.registry import op
from vkrt.ops.sizes import fail, unsupported
from vkrt.ops.strided_copy import variant
from vkrt.work.tensor import Operand

RANGES = {"int8": (-128, 127), "uint8": (0, 255)}
# The largest zero for which floats hold its sum with a number of 8 bits exactly.
MOST_ZERO = 1 << 23


def quantized_dtypes(least: int, most: int) -> frozenset[str]:
    """The dtypes that hold the numbers of a range."""
    return frozenset(dtype for dtype, (low, high) in RANGES.items() if low <= least <= most <= high)


def _quantized(args: Sequence[Any]) -> Allowed:
    if args[0].dtype not in FLOATS:
        raise UnsupportedError(f"tensors of {args[0].dtype}; vkrt quantizes floats")
    return quantized_dtypes(*(int(bound) for bound in args[3:5]))


QUANTIZED = DtypeRule(_quantized)
REALS = DtypeRule(lambda args: FLOATS)
INT8 = DtypeRule(lambda args: frozenset({"int8"}))


def need_scale(scale: float, name: str) -> None:
    """Refuses a scale by which no number can be divided."""
    if not 0 < scale < math.inf or 1 / scale == math.inf:
        fail(name, f"expected a number above 0, got {scale}")


def need_zero(zero: int, name: str) -> None:
    """Refuses a zero that is no int8: sums of products are exact only with an int8."""
    low, high = RANGES["int8"]
    if not low <= zero <= high:
        fail(name, f"expected {low} to {high}, got {zero}")


def need_range(least: int, most: int) -> None:
    """Refuses a range of quantized numbers that no dtype holds."""
    if not quantized_dtypes(least, most):
        unsupported("quant_min", f"numbers from {least} to {most}; vkrt has those of "
                    + " and ".join(RANGES))


def _sizes(x, scale, zero, least, most):
    need_scale(scale, "scale")
    need_range(least, most)
    if abs(zero) > MOST_ZERO:
        unsupported("zero_point", f"{zero}; vkrt takes up to {MOST_ZERO}")
    return (x,)


@op("quantized_decomposed.quantize_per_tensor.default",
    "input:T scale:f zero_point:i quant_min:i quant_max:i dtype:-", sizes=_sizes, dtypes=QUANTIZED)
def quantize(cx, node, x, scale, zero, least, most):
    """clamp(round(x / scale) + zero, least, most), ties to even."""
    source = cx.read(x)
    quantize_into(cx, cx.write(node.outs[0], source.order), source, scale, zero, least, most)


def quantize_into(cx, result: Operand, source: Operand, scale: float, zero: int, least: int,
                  most: int) -> None:
    """Dispatches the quantization of floats."""
    cx.map_texels("quantize", result, [source], [1 / scale, zero, least, most],
                  dtype=variant(source.dtype, result.dtype))


@op("quantized_decomposed.dequantize_per_tensor.default",
    "input:T.int8|uint8 scale:f zero_point:i quant_min:i quant_max:i dtype:- out_dtype:-",
    sizes=_sizes, dtypes=REALS)
def dequantize(cx, node, x, scale, zero, _least, _most):
    """(x - zero) * scale."""
    source = cx.read(x)
    result = cx.write(node.outs[0], source.order)
    cx.map_texels("dequantize", result, [source], [scale, zero],
                  dtype=variant(source.dtype, result.dtype))
