"""Quantization whose scales and zeros are tensors: one for a whole tensor, or one for each of its
channels, rows or blocks.

Scales and zeros are brought to sizes that broadcast to the tensor's; the kernels do the rest.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from vkrt.ops import views
from vkrt.ops.broadcast import broadcast
from vkrt.ops.dtypes import Allowed, DtypeRule
from vkrt.ops.quantization import REALS, need_range, quantized_dtypes
from vkrt.ops.registry import op
from vkrt.ops.sizes import Sizes, fail, need_sizes, unsupported, wrap
from vkrt.ops.strided_copy import variant
from vkrt.pte.coerce import as_int
from vkrt.pte.dtype import MAX_RANK
from vkrt.work.tensor import Tensor

REAL, WHOLE = "input:T.float32|float16", "input:T.int8|uint8"
STEP = "scale:T.float32|float16 zero_point:T.int32|int8"
STEPS = "scales:T.float32|float16 zero_points:T.int32|int8{}"
RANGE = "quant_min:i quant_max:i dtype:-"


def quantized(first: int) -> DtypeRule:
    """The rule of results whose range is given by argument `first` and the next one."""
    def allowed(args: Sequence[Any]) -> Allowed:
        return quantized_dtypes(*map(as_int, args[first:first + 2]))

    return DtypeRule(allowed)


def _along(x: Sizes, axis: int) -> Sizes:
    """The sizes of one number for each index of a dimension."""
    return tuple(size if d == wrap(axis, len(x), "axis") else 1 for d, size in enumerate(x))


def per_token(x: Sizes) -> Sizes:
    return (*x[:-1], 1)


def _per_block(x: Sizes, block: Sizes) -> Sizes:
    if len(block) != len(x):
        fail("block_size", f"expected {len(x)} numbers for sizes {list(x)}, got {list(block)}")
    for size, part in zip(x, block, strict=True):
        if part < 1 or size % part:
            fail("block_size", f"blocks of {list(block)} do not divide sizes {list(x)}")
    if len(_divided(x, block)[0]) > MAX_RANK:
        unsupported("block_size", f"blocks of {list(block)} in sizes {list(x)} make more than "
                    f"{MAX_RANK} dimensions")
    return tuple(size // part for size, part in zip(x, block, strict=True))


def _divided(x: Sizes, block: Sizes) -> tuple[Sizes, Sizes]:
    """The sizes of x with each dimension that blocks divide split in two, (blocks, elements of a
    block); and the sizes of one number for each block."""
    sizes: list[int] = []
    numbers: list[int] = []
    for size, part in zip(x, block, strict=True):
        if part in (1, size):
            sizes.append(size)
            numbers.append(size // part)
        else:
            sizes += [size // part, part]
            numbers += [size // part, 1]
    return tuple(sizes), tuple(numbers)


def _need_count(sizes: Sizes | None, wanted: Sizes, name: str) -> None:
    """Refuses scales or zeros of other sizes, leaving out sizes of 1; None passes."""
    if sizes is not None and [n for n in sizes if n != 1] != [n for n in wanted if n != 1]:
        fail(name, f"expected sizes {list(wanted)} or those without ones, got {list(sizes)}")


def _channel_sizes(x, scales, zeros, axis, least, most):
    if not x:
        fail("axis", "expected a tensor that has dimensions")
    count = (x[wrap(axis, len(x), "axis")],)
    need_sizes(scales, count, "scales")
    need_sizes(zeros, count, "zero_points")
    need_range(least, most)
    return (x,)


def _token_sizes(x, scales, zeros, least, most):
    if not x:
        fail("input", "expected a tensor that has rows, got sizes []")
    need_sizes(scales, per_token(x), "scales")
    need_sizes(zeros, per_token(x), "zero_points")
    need_range(least, most)
    return (x,)


def _block_sizes(x, block, scales, zeros, least, most):
    wanted = _per_block(x, block)
    _need_count(scales, wanted, "scale")
    _need_count(zeros, wanted, "zero_point")
    need_range(least, most)
    return (x,)


def viewed(cx, tensor: Tensor, sizes: Sizes) -> Tensor:
    """A tensor under other sizes."""
    if tuple(tensor.sizes) == sizes:
        return tensor
    if cx.is_constant(tensor):
        return cx.constant_as(tensor, sizes=sizes)
    result = Tensor(sizes, tensor.dtype, name=tensor.name)
    views.reshape(cx, tensor, result)
    return result


def dispatch_by(cx, kernel: str, out: Tensor, x: Tensor, scales: Tensor, zeros: Tensor | None,
                sizes: Sizes, *numbers: int) -> None:
    """Dispatches quantize_by or dequantize_by, with scales and zeros brought to `sizes`; the
    numbers are parameters behind those of the operands."""
    scale = viewed(cx, scales, sizes)
    # Without zeros, the scales fill their binding.
    zero = scale if zeros is None else viewed(cx, zeros, sizes)
    inputs = broadcast(cx, (x, scale, zero), x.sizes, (x.dtype, "float32", "float32"))
    params = inputs.params(cx)
    result = cx.write(out, inputs.order)
    cx.map_texels(kernel, result, inputs.operands, [*params, zeros is not None, *numbers],
                  dtype=variant(x.dtype, out.dtype))


def _blocks(cx, kernel: str, out: Tensor, x: Tensor, block: Sizes, scales: Tensor,
            zeros: Tensor | None, *numbers: int) -> None:
    """Dispatches quantize_by or dequantize_by for blocks, with the arguments of `dispatch_by`."""
    sizes, wanted = _divided(x.sizes, block)
    if sizes == tuple(x.sizes):
        dispatch_by(cx, kernel, out, x, scales, zeros, wanted, *numbers)
        return
    divided = Tensor(sizes, out.dtype, name=out.name)
    dispatch_by(cx, kernel, divided, viewed(cx, x, sizes), scales, zeros, wanted, *numbers)
    views.reshape(cx, divided, out)


@op("quantized_decomposed.quantize_per_channel.default",
    f"{REAL} {STEPS.format('')} axis:i {RANGE}", sizes=_channel_sizes, dtypes=quantized(4))
def _quantize_channels(cx, node, x, scales, zeros, axis, least, most):
    dispatch_by(cx, "quantize_by", node.outs[0], x, scales, zeros, _along(x.sizes, axis), least,
                most, False)


@op("quantized_decomposed.dequantize_per_channel.default",
    f"{WHOLE} {STEPS.format('?')} axis:i {RANGE} out_dtype:-", sizes=_channel_sizes, dtypes=REALS)
def _dequantize_channels(cx, node, x, scales, zeros, axis, _least, _most):
    dispatch_by(cx, "dequantize_by", node.outs[0], x, scales, zeros, _along(x.sizes, axis))


@op("quantized_decomposed.quantize_per_token.default", f"{REAL} {STEPS.format('')} {RANGE}",
    sizes=_token_sizes, dtypes=quantized(3))
def _quantize_tokens(cx, node, x, scales, zeros, least, most):
    dispatch_by(cx, "quantize_by", node.outs[0], x, scales, zeros, per_token(x.sizes), least, most,
            True)


@op("quantized_decomposed.dequantize_per_token.default",
    f"{WHOLE} {STEPS.format('')} {RANGE} output_dtype:-", sizes=_token_sizes, dtypes=REALS)
def _dequantize_tokens(cx, node, x, scales, zeros, _least, _most):
    dispatch_by(cx, "dequantize_by", node.outs[0], x, scales, zeros, per_token(x.sizes))


@op("torchao.quantize_affine.default",
    "input:T.float32|float16 block_size:[i] scale:T.float32|float16 zero_point:T.int32|int8? "
    "output_dtype:- quant_min:i quant_max:i", sizes=_block_sizes, dtypes=quantized(5))
def _quantize_blocks(cx, node, x, block, scale, zero, least, most):
    _blocks(cx, "quantize_by", node.outs[0], x, block, scale, zero, least, most, False)


@op("torchao.dequantize_affine.default",
    "input:T.int8|uint8 block_size:[i] scale:T.float32|float16 zero_point:T.int32|int8? "
    "input_dtype:- quant_min:i? quant_max:i? output_dtype:-",
    sizes=lambda x, block, scale, zero, *_range: _block_sizes(x, block, scale, zero, 0, 0),
    dtypes=REALS)
def _dequantize_blocks(cx, node, x, block, scale, zero, _least, _most):
    _blocks(cx, "dequantize_by", node.outs[0], x, block, scale, zero)


def _tensor_sizes(x, scale, zero, least, most):
    for name, sizes in (("scale", scale), ("zero_point", zero)):
        if math.prod(sizes) != 1:
            fail(name, f"expected one element, got sizes {list(sizes)}")
    need_range(least, most)
    return (x,)


@op("quantized_decomposed.quantize_per_tensor.tensor", f"{REAL} {STEP} {RANGE}",
    sizes=_tensor_sizes, dtypes=quantized(3), kernels="quantized_decomposed::{}.Tensor_out")
def _quantize_tensor(cx, node, x, scale, zero, least, most):
    dispatch_by(cx, "quantize_by", node.outs[0], x, scale, zero, (1,) * x.rank, least, most, False)


@op("quantized_decomposed.dequantize_per_tensor.tensor", f"{WHOLE} {STEP} {RANGE} out_dtype:-",
    sizes=_tensor_sizes, dtypes=REALS, kernels="quantized_decomposed::{}.Tensor_out")
def _dequantize_tensor(cx, node, x, scale, zero, _least, _most):
    dispatch_by(cx, "dequantize_by", node.outs[0], x, scale, zero, (1,) * x.rank)
