"""Quantization of whole tensors whose scale and zero are tensors of one element."""

from __future__ import annotations

import math

from vkrt.ops.quantization import REALS, need_range
from vkrt.ops.quantization_by_tensor import RANGE, REAL, WHOLE, dispatch_by, quantized
from vkrt.ops.registry import op
from vkrt.ops.sizes import fail

STEP = "scale:T.float32|float16 zero_point:T.int32|int8"


def _sizes(x, scale, zero, least, most):
    for name, sizes in (("scale", scale), ("zero_point", zero)):
        if math.prod(sizes) != 1:
            fail(name, f"expected one element, got sizes {list(sizes)}")
    need_range(least, most)
    return (x,)


@op("quantized_decomposed.quantize_per_tensor.tensor", f"{REAL} {STEP} {RANGE}", sizes=_sizes,
    dtypes=quantized(3), kernels="quantized_decomposed::{}.Tensor_out")
def _quantize(cx, node, x, scale, zero, least, most):
    dispatch_by(cx, "quantize_by", node.outs[0], x, scale, zero, (1,) * x.rank, least, most, False)


@op("quantized_decomposed.dequantize_per_tensor.tensor", f"{WHOLE} {STEP} {RANGE} out_dtype:-",
    sizes=_sizes, dtypes=REALS, kernels="quantized_decomposed::{}.Tensor_out")
def _dequantize(cx, node, x, scale, zero, _least, _most):
    dispatch_by(cx, "dequantize_by", node.outs[0], x, scale, zero, (1,) * x.rank)
