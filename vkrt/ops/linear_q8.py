"""Linear layers of quantized weights [N, K] with one scale for each row, and quantized tensors."""

from __future__ import annotations

import math

from vkrt.ops import matmul
from vkrt.ops.epilogue import EpilogueArgs
from vkrt.ops.epilogue_q8 import (
    REAL,
    RESULT,
    SOURCE,
    WEIGHT,
    in_words,
    need_activation,
    need_exact,
    need_step,
    need_vectors,
    quantized,
    quantized_epilogue,
)
from vkrt.ops.quantization import INT8
from vkrt.ops.registry import op
from vkrt.ops.sizes import need_matrix
from vkrt.ops.weight_rows import WeightRows
from vkrt.work.tensor import Operand, Tensor, row_major


def _need_weight(x, scale, zero, weight, sums, scales, bias):
    """Checks everything that comes in; gives the result's sizes."""
    need_matrix(x, weight, "weights")
    need_step(scale, zero, "input")
    need_vectors(weight[0], sums, scales, bias)
    need_exact(weight[1])
    return ((*x[:-1], weight[0]),)


def _sizes(x, scale, zero, weight, sums, scales, out_scale, out_zero, bias, activation=None):
    need_step(out_scale, out_zero, "output")
    need_activation(activation or "none")
    return _need_weight(x, scale, zero, weight, sums, scales, bias)


def _multiply(cx, out: Tensor, source: Operand, weight: Tensor, end: EpilogueArgs) -> None:
    result, matrix, rows = cx.write(out), cx.weight(weight, (0, 1), 1), math.prod(source.grid[:2])
    if result.dtype == "int8":
        source, matrix = in_words(cx, "matmul", source, matrix)
    matmul.multiply(cx, result, source, matrix, rows=rows, epilogue=end)


@op("et_vk.q8ta_linear.default et_vk.q8ta_linear_gemv.default",
    f"{SOURCE} {WEIGHT} {RESULT} activation:s?", sizes=_sizes, dtypes=INT8,
    multiply_adds=matmul.multiply_adds, takes_requantization=True,
    weight_rows=WeightRows(3, (4, 5, 8)))
def _linear(cx, node, x, scale, zero, weight, _sums, scales, out_scale, out_zero, bias, activation):
    """[.., K] -> [.., N], quantized on both sides."""
    end = quantized_epilogue(cx, (scale, zero), scales, bias, (out_scale, out_zero),
                             activation or "none")
    _multiply(cx, node.outs[0], cx.read(x, row_major(x.rank)), weight, end)


@op("et_vk.linear_q8ta_q8csw.default",
    f"x:T input_scale:f input_zero_point:i {WEIGHT} bias:T.float32|float16?", sizes=_need_weight,
    dtypes=REAL, multiply_adds=matmul.multiply_adds, weight_rows=WeightRows(3, (4, 5, 6)))
def _float_linear(cx, node, x, scale, zero, weight, _sums, scales, bias):
    """[.., K] -> [.., N] of floats, which are quantized on their way in."""
    source = quantized(cx, cx.read(x, row_major(x.rank)), x.sizes, scale, zero)
    _multiply(cx, node.outs[0], source, weight, quantized_epilogue(cx, (scale, zero), scales, bias))
