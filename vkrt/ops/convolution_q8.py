"""Convolutions of quantized tensors: general, pointwise, depthwise, grouped and transposed.

The weight of a general, pointwise or transposed one is a matrix [O, kh * kw * I / g]. Its columns
run over (ky, kx, input channel of the group) and are padded to whole texels. The weight of a
depthwise one is [kh, kw, C]. Where the input channels of a group are whole texels, kernels read
both as they are, mapped; elsewhere the channels of every tap are packed to whole texels.

Operators named conv2d_q8ta_.. are those of executorch 1.0 and 1.1. In 1.0 they take and give
floats. In 1.1 a relu is no argument, because the result's zero is then the least number.
"""

from __future__ import annotations

import math

from vkrt.ops import convolution_kernels, matmul
from vkrt.ops.convolution_kernels import Convolution, convolved, deconvolved
from vkrt.ops.epilogue import EpilogueArgs
from vkrt.ops.epilogue_q8 import (
    REAL,
    RESULT,
    SOURCE,
    WEIGHT,
    in_words,
    need_activation,
    need_exact,
    need_padded,
    need_step,
    need_vectors,
    quantized,
    quantized_epilogue,
)
from vkrt.ops.quantization import INT8
from vkrt.ops.registry import op
from vkrt.ops.sizes import Sizes, at_least, fail, need_rank, per_dimension, unsupported
from vkrt.ops.weight_rows import WeightRows
from vkrt.work.tensor import Operand, Tensor, channels_last


def _window(kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes
            ) -> tuple[Sizes, Sizes, Sizes, Sizes]:
    """The kernel and its steps, each as (y, x)."""
    return (per_dimension(kernel, 2, "kernel_size", 1), per_dimension(stride, 2, "stride", 1),
            per_dimension(padding, 2, "padding", 0), per_dimension(dilation, 2, "dilation", 1))


def _group_inputs(x: Sizes, groups: int) -> int:
    """Input channels of a group of images [N, C, H, W]."""
    if len(x) != 4:
        unsupported("x", f"sizes {list(x)}; vkrt convolves quantized images [N, C, H, W]")
    at_least(groups, 1, "groups")
    if x[1] % groups:
        fail("groups", f"{groups} does not divide the {x[1]} channels of sizes {list(x)}")
    return x[1] // groups


def _need_matrix(x: Sizes, weight: Sizes, kernel: Sizes, groups: int) -> int:
    """Checks the matrix of a weight; gives its rows, the channels of the result."""
    need_rank(weight, 2, "weights")
    length = math.prod(kernel) * _group_inputs(x, groups)
    if 0 in weight or not length:
        unsupported("weights", f"no elements (sizes {list(weight)})")
    need_padded(weight, (weight[0], length), "weights")
    if weight[0] % groups:
        fail("groups", f"{groups} does not divide the {weight[0]} rows of weight sizes "
             f"{list(weight)}")
    need_exact(length)
    return weight[0]


def _need_ends(channels: int, scale, zero, sums, scales, out_scale, out_zero, bias, activation):
    need_step(scale, zero, "input")
    need_step(out_scale, out_zero, "output")
    need_vectors(channels, sums, scales, bias)
    need_activation(activation)


def _float_sizes(x, scale, zero, weight, sums, scales, bias, kernel, stride, padding, dilation,
                 groups):
    return _sizes(x, scale, zero, weight, sums, scales, 1.0, 0, bias, kernel, stride, padding,
                  dilation, groups)


def _sizes(x, scale, zero, weight, sums, scales, out_scale, out_zero, bias, kernel, stride,
           padding, dilation, groups, activation="none"):
    window = _window(kernel, stride, padding, dilation)
    channels = _need_matrix(x, weight, window[0], groups)
    _need_ends(channels, scale, zero, sums, scales, out_scale, out_zero, bias, activation)
    return ((x[0], channels, *convolved(x[2:], *window)),)


def _depthwise_sizes(x, scale, zero, weight, sums, scales, out_scale, out_zero, bias, kernel,
                     stride, padding, dilation, groups, activation="none"):
    window = _window(kernel, stride, padding, dilation)
    if _group_inputs(x, groups) != 1:
        fail("groups", f"expected one for each channel, got {groups} for sizes {list(x)}")
    need_padded(weight, (*window[0], groups), "weights")
    if window[0][1] > convolution_kernels.MAX_DEPTHWISE_KERNEL_X:
        unsupported("kernel_size", f"{list(window[0])}; vkrt has quantized depthwise kernels up to "
                    f"{convolution_kernels.MAX_DEPTHWISE_KERNEL_X} wide")
    need_exact(math.prod(window[0]))
    _need_ends(groups, scale, zero, sums, scales, out_scale, out_zero, bias, activation)
    return ((x[0], groups, *convolved(x[2:], *window)),)


def _transposed_sizes(x, scale, zero, weight, sums, scales, out_scale, out_zero, bias, kernel,
                      stride, padding, output_padding, dilation, groups, activation):
    window = _window(kernel, stride, padding, dilation)
    channels = _need_matrix(x, weight, window[0], groups)
    _need_ends(channels, scale, zero, sums, scales, out_scale, out_zero, bias, activation)
    extra = per_dimension(output_padding, 2, "output_padding", 0)
    return ((x[0], channels, *deconvolved(x[2:], *window, extra)),)


def _multiply_adds(x: Tensor, _scale, _zero, weight: Tensor, *others) -> int:
    (out,) = others[-1]
    return out.numel * weight.sizes[1]


def _depthwise_multiply_adds(x: Tensor, _scale, _zero, weight: Tensor, *others) -> int:
    (out,) = others[-1]
    return out.numel * math.prod(weight.sizes[:2])


def _convolution_of(x: Tensor, out: Tensor, groups: int, *window: Sizes) -> Convolution:
    kernel, stride, padding, dilation = ((values[0], values[-1]) for values in window)
    return Convolution(x, out, kernel, stride, padding, dilation, groups)


def _matrix(cx, conv: Convolution, weight: Tensor) -> Operand:
    """The weight [O, length] as O | taps, input channels of the group."""
    sizes = conv.channels, conv.taps, conv.group_inputs
    length, pitch = conv.taps * conv.group_inputs, weight.sizes[1]
    return cx.weight(cx.constant_as(weight, sizes=sizes), (0, 1, 2), 1,
                     pitch=None if pitch == length else pitch)


def _of_rows(sizes):
    """The sizes rule of a depthwise convolution in 1.1. Its sums may be [kh, C], one for every row
    of the kernel; nothing reads them."""
    def rule(x, scale, zero, weight, sums, *others):
        groups = others[-1]
        return sizes(x, scale, zero, weight, (groups,) if sums == (*weight[:1], groups) else sums,
                     *others)
    return rule


_WINDOW = "kernel_size:[i] stride:[i] padding:[i] {}dilation:[i] groups:i"
_OLDER = f"{SOURCE} {WEIGHT} {RESULT} {_WINDOW.format('')}"
_PARAMETERS = f"{SOURCE} {WEIGHT} {RESULT} {_WINDOW} activation:s"


def _rows_behind(bias: int) -> WeightRows:
    """Some rows of the weight, their sums, scales and bias; the window and the groups are behind
    the place of the bias."""
    return WeightRows(3, (4, 5, bias), dim=1, suits=lambda node: node.args[bias + 5] == 1)


def _convolve(cx, conv: Convolution, source: Operand, weight: Tensor, end: EpilogueArgs) -> None:
    """Any groups; the result is quantized, or real where the node's is."""
    result, matrix = cx.write(conv.out, source.order), _matrix(cx, conv, weight)
    if conv.has_whole_texels and result.dtype == "int8":
        shader = "matmul" if conv.is_pointwise else "conv2d"
        source, matrix = in_words(cx, shader, source, matrix)
    if conv.is_pointwise:
        matmul.multiply(cx, result, source, matrix, rows=source.grid[0] * source.grid[1],
                        epilogue=end)
    else:
        convolution_kernels.general(cx, conv, source, matrix, end, result)


@op("et_vk.conv2d_q8ta_q8csw_q8to.default", _OLDER, sizes=_sizes, dtypes=INT8,
    multiply_adds=_multiply_adds, takes_requantization=True, weight_rows=_rows_behind(8))
@op("et_vk.q8ta_conv2d.default et_vk.q8ta_conv2d_pw.default", _PARAMETERS.format(""),
    sizes=_sizes, dtypes=INT8, multiply_adds=_multiply_adds, takes_requantization=True,
    weight_rows=_rows_behind(8))
def _convolution(cx, node, x, scale, zero, weight, _sums, scales, out_scale, out_zero, bias,
                 kernel, stride, padding, dilation, groups, activation="none"):
    conv = _convolution_of(x, node.outs[0], groups, kernel, stride, padding, dilation)
    end = quantized_epilogue(cx, (scale, zero), scales, bias, (out_scale, out_zero), activation)
    _convolve(cx, conv, cx.read(x, channels_last(4)), weight, end)


@op("et_vk.conv2d_q8ta_q8csw.default", f"x:T input_scale:f input_zero_point:i {WEIGHT} "
    f"bias:T.float32|float16? {_WINDOW.format('')}", sizes=_float_sizes, dtypes=REAL,
    multiply_adds=_multiply_adds, weight_rows=_rows_behind(6))
def _float_convolution(cx, node, x, scale, zero, weight, _sums, scales, bias, kernel, stride,
                       padding, dilation, groups):
    """A convolution of floats, which are quantized first."""
    conv = _convolution_of(x, node.outs[0], groups, kernel, stride, padding, dilation)
    source = quantized(cx, cx.read(x, channels_last(4)), x.sizes, scale, zero)
    _convolve(cx, conv, source, weight, quantized_epilogue(cx, (scale, zero), scales, bias))


@op("et_vk.conv2d_q8ta_q8csw_q8to_dw.default", _OLDER, sizes=_of_rows(_depthwise_sizes),
    dtypes=INT8, multiply_adds=_depthwise_multiply_adds, takes_requantization=True)
@op("et_vk.q8ta_conv2d_dw.default", _PARAMETERS.format(""), sizes=_depthwise_sizes, dtypes=INT8,
    multiply_adds=_depthwise_multiply_adds, takes_requantization=True)
def _depthwise(cx, node, x, scale, zero, weight, _sums, scales, out_scale, out_zero, bias, kernel,
               stride, padding, dilation, groups, activation="none"):
    conv = _convolution_of(x, node.outs[0], groups, kernel, stride, padding, dilation)
    end = quantized_epilogue(cx, (scale, zero), scales, bias, (out_scale, out_zero), activation,
                             added=conv.taps)
    convolution_kernels.depthwise(cx, conv, cx.read(x, channels_last(4)),
                                  cx.weight(weight, (0, 1, 2), 1), end)


@op("et_vk.q8ta_conv2d_transposed.default", _PARAMETERS.format("output_padding:[i] "),
    sizes=_transposed_sizes, dtypes=INT8, takes_requantization=True,
    multiply_adds=lambda x, _scale, _zero, weight, *_others: (
        x.numel // x.sizes[1] * math.prod(weight.sizes)))
def _transposed(cx, node, x, scale, zero, weight, _sums, scales, out_scale, out_zero, bias, kernel,
                stride, padding, _output_padding, dilation, groups, activation):
    conv = _convolution_of(x, node.outs[0], groups, kernel, stride, padding, dilation)
    end = quantized_epilogue(cx, (scale, zero), scales, bias, (out_scale, out_zero), activation)
    convolution_kernels.transposed(cx, conv, cx.read(x, channels_last(4)),
                                   _matrix(cx, conv, weight), end, is_depthwise=False)
