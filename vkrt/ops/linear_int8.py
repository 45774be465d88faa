"""Linear layers with 8-bit numbers: weights of 8 bits, and inputs quantized at run time.

An input that is quantized by a scale and a zero point for each row is rounded to the values that 8
bits can hold, and stays floats: the product with 4-bit weights is then that of linear_q4. Several
layers of one input (queries, keys and values) share the rounded input.
"""

from __future__ import annotations

from vkrt.graph.graph import Node
from vkrt.ops.attributes import NORM, QPARAMS
from vkrt.ops.dtypes import FLOATS_ALIKE
from vkrt.ops.linear_q4 import always, linear, linear_sizes, need_bias
from vkrt.ops.linear_q4_row import Layer
from vkrt.ops.matmul import multiply, multiply_adds
from vkrt.ops.quantization_params import qparams_limits
from vkrt.ops.registry import known, op
from vkrt.ops.sizes import need_matrix, need_sizes
from vkrt.ops.teams import chunk_for
from vkrt.ops.weight_rows import WeightRows
from vkrt.work.tensor import Operand, Tensor, round_up, row_major


def _rounded(cx, x: Tensor, scale: Tensor, zero_point: Tensor) -> Operand:
    """The input rounded to the values that 8 bits can hold; made once for all that read it."""
    qparams = cx.attribute(QPARAMS)
    if qparams is not None:
        _, _, _, *limits, _ = known(qparams.op).schema.read(qparams.args)
        return cx.derived((x, *limits), lambda: _rounded_row(
            cx, x, qparams_limits(x, *limits), cx.attribute(NORM)))
    source = cx.read(x, row_major(x.rank))
    scales, zero_points = (cx.read(t, row_major(t.rank)) for t in (scale, zero_point))

    def make() -> Operand:
        result = cx.temporary(x.sizes, x.dtype)
        cx.map_texels("quantize_rows", result, [source, scales, zero_points],
                      [scales.packed, *scales.grid])
        return result

    return cx.derived((x, scales, zero_points), make)


def _rounded_row(cx, x: Tensor, limits: list[float], norm: Node | None) -> Operand:
    """A single row, rounded by a kernel that also does its norm, scale and zero point."""
    factor, epsilon = None, 0.0
    if norm is not None:
        x, factor, epsilon = known(norm.op).schema.read(norm.args)
    source = cx.read(x, row_major(x.rank))
    result, count = cx.temporary(source.sizes, source.dtype), source.grid[2]
    chunk = chunk_for(cx.target, 1, count)
    cx.dispatch("quantize_row", [*result.grid, result.packed, chunk, *limits, norm is not None,
                                 epsilon], [result], [source, cx.vector(factor, x.dtype)],
                -(-count // chunk), loops=2 * count + count // 64 + chunk + 1)
    return result


def _dynamic_sizes(x, scale, zero_point, weight, sums, scales, group, bias):
    result = linear_sizes(x, weight, scales, group, bias)
    need_sizes(scale, x[:-1], "input_scale")
    need_sizes(zero_point, x[:-1], "input_zero_point")
    need_sizes(sums, (x[-1] // group, round_up(weight[0], 8)), "weight_sums")
    return result


@op("et_vk.linear_dq8ca_q4gsw.default",
    "self:T input_scale:T input_zero_point:T.int8 weights:T.uint8 weight_sums:T.int32 "
    "weight_scales:T group_size:i bias:T?", sizes=_dynamic_sizes, dtypes=FLOATS_ALIKE,
    multiply_adds=lambda x, _scale, _zero, weight, *others: multiply_adds(x, weight, *others),
    takes_residual=always, in_views=True, of_row=3,
    weight_rows=WeightRows(3, (7,), whole={4: 8, 5: 4}))
def _dynamic_linear(cx, node, x, scale, zero_point, *_others):
    """x [.., K], quantized by row, times weight [N, K] in groups, plus bias [N] or None."""
    linear(cx, node, _rounded(cx, x, scale, zero_point), _dynamic)


def _dynamic(out, _x, _scale, _zero_point, weight, _sums, scales, group, bias) -> Layer:
    return Layer(out, weight, scales, group, bias)


def _int8_sizes(x, weight, scales):
    need_matrix(x, weight, "mat2")
    need_bias(scales, weight[0], "scales")
    return ((*x[:-1], weight[0]),)


@op("aten._weight_int8pack_mm.default", "self:T mat2:T.int8 scales:T", sizes=_int8_sizes,
    dtypes=FLOATS_ALIKE, kernels="", multiply_adds=multiply_adds, weight_rows=WeightRows())
def _int8_linear(cx, node, x, weight, scales):
    """x [.., K] times weight [N, K], times a scale for each row of the weight."""
    out = node.outs[0]
    source = cx.read(x, row_major(x.rank))
    matrix = cx.weight(weight, (0, 1), rows=1)
    multiply(cx, cx.write(out), source, matrix, rows=source.grid[0] * source.grid[1],
             scales=cx.vector(scales, out.dtype))
