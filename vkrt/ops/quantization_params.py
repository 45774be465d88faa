"""Scales and zero points chosen at run time, so that 8 bits hold the range of the numbers.

The range covers 0 as well. choose_qparams.comp chooses them for each row. For a whole tensor it
gets one row, with the tensor's least and largest numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from vkrt.ops.broadcast import convert_into
from vkrt.ops.concat import concatenate
from vkrt.ops.dtypes import ONE_FLOAT
from vkrt.ops.quantization_by_tensor import per_token, viewed
from vkrt.ops.reduction import lower_reduction
from vkrt.ops.registry import op
from vkrt.ops.sizes import fail, unsupported
from vkrt.work.tensor import Tensor, row_major

# The smallest scale where a program names none, as torch has it: the smallest normal number
SMALLEST = {"float32": 2.0 ** -126, "float16": 2.0 ** -14}
# The smallest scale of the operator per token, which has no such argument: the distance from 1 to
# the next float
TOKEN_SMALLEST = 2.0 ** -23
ZEROS = (frozenset({"int8", "int32"}),)


def qparams_limits(x: Tensor, low: int, high: int, smallest: float | None) -> list[float]:
    """The parameters of qparams.glsl."""
    # Devices may make numbers below the smallest normal one 0.
    smallest = max(SMALLEST[x.dtype] if smallest is None else smallest, SMALLEST["float32"])
    return [float(low), float(high), smallest]


def _need_range(low: int, high: int) -> None:
    if not -128 <= low < high <= 127:
        unsupported("quant_min", f"{low} to {high}; vkrt takes a range within -128 to 127")


def _affine_sizes(x, mapping, block, low, high, _smallest, keep):
    if mapping != "ASYMMETRIC":
        unsupported("mapping_type", f"{mapping!r}; vkrt takes 'ASYMMETRIC'")
    if not x or block != (*[1] * (len(x) - 1), x[-1]):
        unsupported("block_size", f"{list(block)} for sizes {list(x)}; vkrt takes whole rows")
    _need_range(low, high)
    rows = per_token(x) if keep else x[:-1]
    return rows, rows


def _token_sizes(x):
    if not x:
        fail("input", "expected a tensor that has rows, got sizes []")
    return per_token(x), per_token(x)


def _tensor_sizes(x, low, high, _smallest):
    if not math.prod(x):
        fail("input", f"expected a tensor that has elements, got sizes {list(x)}")
    _need_range(low, high)
    return (1,), (1,)


@op("torchao.choose_qparams_affine.default",
    "input:T mapping_type:s block_size:[i] target_dtype:- quant_min:i quant_max:i eps:f? "
    "scale_dtype:- zero_point_dtype:- keepdim:b?", sizes=_affine_sizes, dtypes=ONE_FLOAT,
    further=ZEROS)
def _choose_for_rows(cx, node, x, _mapping, _block, low, high, smallest, _keep):
    """A scale and a zero point for each row of x [.., K]."""
    _choose(cx, node.outs, x, qparams_limits(x, low, high, smallest))


@op("quantized_decomposed.choose_qparams_per_token_asymmetric.default", "input:T dtype:-",
    sizes=_token_sizes, dtypes=ONE_FLOAT, further=ZEROS)
def _choose_for_tokens(cx, node, x):
    """A scale and a zero point for each row of x [.., K], for all of int8."""
    _choose(cx, node.outs, x, qparams_limits(x, -128, 127, TOKEN_SMALLEST))


@op("quantized_decomposed.choose_qparams.tensor",
    "input:T quant_min:i quant_max:i eps:f dtype:-", sizes=_tensor_sizes, dtypes=ONE_FLOAT,
    further=ZEROS, kernels="quantized_decomposed::{}.Tensor_out")
def _choose_for_tensor(cx, node, x, low, high, smallest):
    """A scale [1] and a zero point [1] for all of x."""
    ends = []
    for function in ("MIN", "MAX"):
        end = Tensor((), x.dtype)
        lower_reduction(cx, x, end, None, False, function)
        ends.append(viewed(cx, end, (1,)))
    row = Tensor((2,), x.dtype)
    concatenate(cx, row, ends, 0)
    _choose(cx, node.outs, row, qparams_limits(x, low, high, smallest))


def _choose(cx, outs: Sequence[Tensor], x: Tensor, limits: list[float]) -> None:
    scale, zero = outs
    bytes_ = zero if zero.dtype == "int8" else Tensor(zero.sizes, "int8")
    source = cx.read(x, row_major(x.rank))
    scales, zero_points = cx.write(scale), cx.write(bytes_)
    cx.dispatch("choose_qparams", [*scales.grid, scales.packed, *source.grid, *limits],
                [scales, zero_points], [source], scales.texels, loops=4 * (source.grid[2] + 1))
    if bytes_ is not zero:
        convert_into(cx, cx.write(zero, zero_points.order), cx.read(bytes_))
