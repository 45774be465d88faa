"""Shape rules of quantized operators.

Exporters pad what belongs to an output channel (scales, sums of weights, biases) to a whole number
of texels, so those may be longer than there are channels.
"""

from __future__ import annotations

import math

from vkrt.ops.shapes.pointwise import binary
from vkrt.ops.shapes.products import linear
from vkrt.ops.shapes.rules import at_least, fail, need_rank, need_sizes, rule, spread, wrap
from vkrt.ops.shapes.windows import convolved, deconvolved, pixel_shuffle

ACTIVATIONS = ("none", "relu")


def need_channels(sizes, channels, name):
    """Refuses a vector shorter than the channels; None passes."""
    if sizes is not None and (len(sizes) != 1 or sizes[0] < channels):
        fail(name, f"expected at least {channels} elements, got sizes {list(sizes)}")


def need_activation(value):
    """Refuses a fused activation nobody knows."""
    if value not in ACTIVATIONS:
        fail("activation", f"expected one of {ACTIVATIONS}, got {value!r}")


# Conversions


@rule("self:T scale:f zero_point:i quant_min:i quant_max:i dtype:-",
      "quantized_decomposed.quantize_per_tensor.default")
@rule("self:T.int8|uint8|int32 scale:f zero_point:i quant_min:i quant_max:i dtype:- out_dtype:-",
      "quantized_decomposed.dequantize_per_tensor.default")
def per_tensor(x, *_numbers):
    return (x,)


@rule("self:T scales:T zero_points:T? axis:i quant_min:i quant_max:i dtype:-",
      "quantized_decomposed.quantize_per_channel.default")
@rule("self:T.int8|uint8|int32 scales:T zero_points:T? axis:i quant_min:i quant_max:i dtype:- "
      "out_dtype:-", "quantized_decomposed.dequantize_per_channel.default")
def per_channel(x, scales, zero_points, axis, *_limits):
    if not x:
        fail("self", "expected at least rank 1")
    axis = wrap(axis, len(x), "axis")
    need_sizes(scales, x[axis:axis + 1], "scales")
    need_sizes(zero_points, x[axis:axis + 1], "zero_points")
    return (x,)


@rule("self:T scales:T zero_points:T quant_min:i quant_max:i dtype:-",
      "quantized_decomposed.quantize_per_token.default")
@rule("self:T scales:T zero_points:T quant_min:i quant_max:i dtype:- out_dtype:-",
      "quantized_decomposed.dequantize_per_token.default")
def per_token(x, scales, zero_points, *_limits):
    for name, sizes in (("scales", scales), ("zero_points", zero_points)):
        if math.prod(sizes) != math.prod(x[:-1]):
            fail(name, f"expected one element per row of {list(x)}, got sizes {list(sizes)}")
    return (x,)


@rule("self:T mapping:s block_size:[i] dtype:- quant_min:n? quant_max:n? eps:f? scale_dtype:- "
      "zero_point_dtype:- keepdim:b?", "torchao.choose_qparams_affine.default")
def choose_qparams(x, _mapping, block, _low, _high, _eps, keepdim):
    if len(block) != len(x):
        fail("block_size", f"expected {len(x)} numbers, got {list(block)}")
    for size, number in zip(x, block, strict=True):
        if size % at_least(number, 1, "block_size"):
            fail("block_size", f"{list(block)} does not divide {list(x)}")
    counts = tuple(size // number for size, number in zip(x, block, strict=True))
    if not keepdim:
        # A block as long as its dimension leaves none.
        counts = tuple(n for n, size, number in zip(counts, x, block, strict=True)
                       if n != 1 or number == 1)
    return counts, counts


# Products


@rule("self:T weight:T.int8 scales:T", "aten._weight_int8pack_mm.default")
def int8pack_mm(x, weight, scales):
    need_rank(x, 2, "self")
    sizes = linear(x, weight, None)
    need_sizes(scales, weight[:1], "scales")
    return sizes


@rule("self:T weight:T.uint8 scales:T", "et_vk.linear_qcs4w.default")
def linear_qcs4w(x, weight, scales):
    need_rank(weight, 2, "weight")
    need_channels(scales, weight[0], "scales")
    return linear(x, (weight[0], 2 * weight[1]), None)


@rule("self:T weights:T.uint8 scales:T group_size:i bias:T?", "et_vk.linear_q4gsw.default")
def linear_q4gsw(x, weights, scales, group, bias):
    need_rank(weights, 2, "weights")
    if not x or not 0 <= 2 * weights[1] - x[-1] < 8:
        fail("weights", f"expected {x[-1:] or 'no'} columns of two, got sizes {list(weights)}")
    groups = -(-x[-1] // at_least(group, 1, "group_size"))
    _grouped(scales, groups, weights[0], "scales")
    need_channels(bias, weights[0], "bias")
    return ((*x[:-1], weights[0]),)


def _grouped(sizes, groups, channels, name):
    need_rank(sizes, 2, name)
    if sizes[0] != groups or sizes[1] < channels:
        fail(name, f"expected sizes [{groups}, {channels} or more], got {list(sizes)}")


@rule("input:T input_scales:T input_zero_points:T weights:T.uint8 weight_sums:T scales:T "
      "group_size:i bias:T?", "et_vk.linear_dq8ca_q4gsw.default")
def linear_dq8ca_q4gsw(x, input_scales, input_zeros, weights, sums, scales, group, bias):
    sizes = linear_q4gsw(x, weights, scales, group, bias)
    for name, vector in (("input_scales", input_scales), ("input_zero_points", input_zeros)):
        if math.prod(vector) != math.prod(x[:-1]):
            fail(name, f"expected one element per row of {list(x)}, got sizes {list(vector)}")
    _grouped(sums, scales[0], weights[0], "weight_sums")
    return sizes


@rule("weight:T.uint8 scales:T group_size:i indices:T.int32 is_linear_weight:b?",
      "et_vk.embedding_q4gsw.default")
def embedding_q4gsw(weight, scales, group, indices, _order):
    need_rank(weight, 2, "weight")
    columns = 2 * weight[1]
    need_sizes(scales, (weight[0], -(-columns // at_least(group, 1, "group_size"))), "scales")
    return ((*indices, columns),)


def _padded_linear(x, weights, sums, scales, bias):
    """Sizes of a product with int8 weights whose rows may be padded."""
    need_rank(weights, 2, "weights")
    if not x or not 0 <= weights[1] - x[-1] < 4:
        fail("weights", f"expected {x[-1:] or 'no'} columns, got sizes {list(weights)}")
    need_channels(sums, weights[0], "weight_sums")
    need_channels(scales, weights[0], "weight_scales")
    need_channels(bias, weights[0], "bias")
    return ((*x[:-1], weights[0]),)


@rule("x:T input_scale:f input_zero_point:i weights:T.int8 weight_sums:T.int32 weight_scales:T "
      "bias:T?", "et_vk.linear_q8ta_q8csw.default")
def linear_q8ta_q8csw(x, _scale, _zero, weights, sums, scales, bias):
    return _padded_linear(x, weights, sums, scales, bias)


@rule("x:T.int8 input_scale:f input_zero_point:i weights:T.int8 weight_sums:T.int32 "
      "weight_scales:T output_scale:f output_zero_point:i bias:T? activation:s",
      "et_vk.q8ta_linear.default", "et_vk.q8ta_linear_gemv.default")
def q8ta_linear(x, _scale, _zero, weights, sums, scales, _out_scale, _out_zero, bias, activation):
    need_activation(activation)
    return _padded_linear(x, weights, sums, scales, bias)


# Convolutions

_CONVOLUTION = ("x:T.int8 input_scale:f input_zero_point:i weights:T.int8 weight_sums:T.int32 "
                "weight_scales:T output_scale:f output_zero_point:i bias:T? kernel_size:[i] "
                "stride:[i] padding:[i] ")


def _window(x, kernel, stride, padding, dilation):
    need_rank(x, 4, "x")
    return [spread(kernel, 2, "kernel_size", 1), spread(stride, 2, "stride", 1),
            spread(padding, 2, "padding", 0), spread(dilation, 2, "dilation", 1)]


def _matrix_channels(x, weights, kernel, groups):
    """Output channels of weights [channels, taps], the taps padded to a texel."""
    at_least(groups, 1, "groups")
    need_rank(weights, 2, "weights")
    if x[1] % groups or weights[0] % groups:
        fail("groups", f"{groups} does not divide {x[1]} and {weights[0]} channels")
    taps = math.prod(kernel) * (x[1] // groups)
    if not 0 <= weights[1] - taps < 4:
        fail("weights", f"expected {taps} columns, got sizes {list(weights)}")
    return weights[0]


def _need_vectors(channels, sums, scales, bias):
    need_channels(sums, channels, "weight_sums")
    need_channels(scales, channels, "weight_scales")
    need_channels(bias, channels, "bias")


@rule(_CONVOLUTION + "dilation:[i] groups:i activation:s", "et_vk.q8ta_conv2d.default",
      "et_vk.q8ta_conv2d_pw.default")
def q8ta_conv2d(x, _scale, _zero, weights, sums, scales, _out_scale, _out_zero, bias, kernel,
                stride, padding, dilation, groups, activation):
    window = _window(x, kernel, stride, padding, dilation)
    channels = _matrix_channels(x, weights, window[0], groups)
    _need_vectors(channels, sums, scales, bias)
    need_activation(activation)
    return ((x[0], channels, *convolved(x[2:], *window)),)


@rule(_CONVOLUTION + "dilation:[i] groups:i activation:s", "et_vk.q8ta_conv2d_dw.default")
def q8ta_conv2d_dw(x, _scale, _zero, weights, sums, scales, _out_scale, _out_zero, bias, kernel,
                   stride, padding, dilation, groups, activation):
    window = _window(x, kernel, stride, padding, dilation)
    need_sizes(weights, (*window[0], x[1]), "weights")
    if groups != x[1]:
        fail("groups", f"expected the {x[1]} channels, got {groups}")
    _need_vectors(x[1], sums, scales, bias)
    need_activation(activation)
    return ((*x[:2], *convolved(x[2:], *window)),)


@rule(_CONVOLUTION + "output_padding:[i] dilation:[i] groups:i activation:s",
      "et_vk.q8ta_conv2d_transposed.default")
def q8ta_conv2d_transposed(x, _scale, _zero, weights, sums, scales, _out_scale, _out_zero, bias,
                           kernel, stride, padding, extra, dilation, groups, activation):
    window = _window(x, kernel, stride, padding, dilation)
    channels = _matrix_channels(x, weights, window[0], groups)
    _need_vectors(channels, sums, scales, bias)
    need_activation(activation)
    window.append(spread(extra, 2, "output_padding", 0))
    return ((x[0], channels, *deconvolved(x[2:], *window)),)


# Element-wise and images


@rule("a:T.int8 b:T.int8 a_scale:f a_zero_point:i b_scale:f b_zero_point:i output_scale:f "
      "output_zero_point:i alpha:f", "et_vk.q8ta_add.default")
def q8ta_add(a, b, *_numbers):
    return binary(a, b)


@rule("input:T.int8 input_scale:f input_zero_point:i output_scale:f output_zero_point:i",
      "et_vk.q8ta_relu.default")
def q8ta_relu(x, *_numbers):
    return (x,)


@rule("input:T.int8 input_scale:f input_zero_point:i output_inv_scale:f output_zero_point:i "
      "upscale_factor:i", "et_vk.q8ta_pixel_shuffle.default")
def q8ta_pixel_shuffle(x, _scale, _zero, _out_scale, _out_zero, factor):
    return pixel_shuffle(x, factor)
