"""Quantized nodes in numpy, beside those of floats (`in_numpy`).

Quantized numbers are those that kernels make, to the bit, as long as what is quantized is exact:
what lies between them is computed in fp32, step by step. Sums of products, and functions that no
kernel computes exactly, are computed in float64.
"""

import math

import numpy as np
import reference
from harness import doubled
from in_numpy import array_of, results_in_numpy
from samples.linear_q4 import embedding, grouped_linear, unpacked
from samples.linear_q8 import dynamic_linear, qparams
from samples.quantized_networks import ended, quantized, real

from vkrt.graph.graph import Node, replaced
from vkrt.work.tensor import Tensor


def evaluate(nodes: list[Node], data: bytes, values: dict[Tensor, np.ndarray]) -> None:
    """Adds the results of the nodes, whose constants are in `data`, to the values."""
    for node in nodes:
        constants = {tensor: array_of(tensor, data) for tensor in node.tensors()
                     if tensor.constant is not None}
        args = replaced(node.args, values | constants)
        if node.op in QUANTIZED:
            made = QUANTIZED[node.op](*args)
            results = made if isinstance(made, tuple) else (made,)
        else:
            results = results_in_numpy(node.op, [
                doubled(arg) if node.op in ROUNDED and isinstance(arg, np.ndarray) else arg
                for arg in args])
        for out, result in zip(node.outs, results, strict=True):
            # What is half precision for kernels is rounded nowhere here.
            double = out.dtype in ("float16", "float32") and result.dtype == np.float64
            values[out] = result if double else result.astype(out.dtype)


def _quantize(x, scale, zero, least, most, *_):
    return quantized(x, scale, int(zero), least, most)


def _dequantize(x, scale, zero, *_):
    return real(x, scale, int(zero))


def _weight_of(matrix, channels: int, inputs: int, kernel) -> np.ndarray:
    """[O, kh * kw * I] as [O, I, kh, kw]; of a depthwise one it is [kh, kw, O]."""
    if matrix.ndim == 3:
        return matrix[..., :channels].transpose(2, 0, 1)[:, None]
    rows = matrix[:, :math.prod(kernel) * inputs]
    return rows.reshape(len(rows), *kernel, inputs).transpose(0, 3, 1, 2)


def _sums(x, zero, matrix, kernel, stride, padding, dilation, groups) -> np.ndarray:
    """The sums of products of a convolution, channels last."""
    weight = _weight_of(matrix, x.shape[1], x.shape[1] // groups, kernel)
    sums = reference.conv(x.astype(np.float64) - int(zero), weight, None, stride, padding, dilation,
                          groups)
    return np.moveaxis(sums, 1, -1)


def _conv_q8(x, scale, zero, matrix, _sums_, scales, new_scale, new_zero, bias, *window):
    *window, activation = window
    result = ended(_sums(x, zero, matrix, *window), scale, scales, bias, activation)
    return np.moveaxis(quantized(result, new_scale, int(new_zero)), -1, 1)


def _conv_of_floats(x, scale, zero, matrix, _sums_, scales, bias, *window):
    sums = _sums(quantized(x, scale, int(zero)), zero, matrix, *window)
    return np.moveaxis(ended(sums, scale, scales, bias), -1, 1)


def _transposed_q8(x, scale, zero, matrix, _sums_, scales, new_scale, new_zero, bias, kernel,
                   stride, padding, extra, dilation, groups, activation):
    inputs = x.shape[1] // groups
    rows = _weight_of(matrix, x.shape[1], inputs, kernel)
    each = len(rows) // groups
    weight = rows.reshape(groups, each, inputs, *kernel).swapaxes(1, 2)
    sums = reference.conv_transpose(
        x.astype(np.float64) - int(zero), weight.reshape(groups * inputs, each, *kernel), None,
        stride, padding, dilation, extra, groups)
    result = ended(np.moveaxis(sums, 1, -1), scale, scales, bias, activation)
    return np.moveaxis(quantized(result, new_scale, int(new_zero)), -1, 1)


def _products(x, zero, weight) -> np.ndarray:
    return (x.astype(np.float64) - int(zero)) @ weight[:, :x.shape[-1]].T.astype(np.float64)


def _linear_q8(x, scale, zero, weight, _sums_, scales, new_scale, new_zero, bias, activation):
    sums = _products(x, zero, weight)
    return quantized(ended(sums, scale, scales, bias, activation), new_scale, int(new_zero))


def _linear_of_floats(x, scale, zero, weight, _sums_, scales, bias):
    return ended(_products(quantized(x, scale, int(zero)), zero, weight), scale, scales, bias)


def _add_q8(a, b, scale_a, zero_a, scale_b, zero_b, scale, zero, alpha):
    total = real(a, scale_a, int(zero_a)) + np.float32(alpha) * real(b, scale_b, int(zero_b))
    return quantized(total, scale, int(zero))


def _relu_q8(x, scale, zero, new_scale, new_zero):
    return quantized(np.maximum(real(x, scale, int(zero)), 0), new_scale, int(new_zero))


def _shuffle_q8(x, scale, zero, inverse, new_zero, factor):
    moved = reference.pixel_shuffle(x, factor)
    return quantized(real(moved, scale, int(zero)), 1 / inverse, int(new_zero))


def _qparams(x, *others):
    scale, zero = qparams(np.asarray(x, np.float32), *others)
    return np.asarray(scale, np.float32), zero


def _channels(x, weight, scales):
    return x @ (unpacked(weight, True) * scales.astype(np.float64)[:len(weight), None]).T


def _int8_layer(x, weight, scales):
    return x @ weight.T.astype(np.float64) * scales[:len(weight)]


# What is computed in float64: no two ways round it alike.
ROUNDED = {"et_vk.rms_norm.default", *(f"aten.{name}" for name in (
    "linear.default", "convolution.default", "bmm.default", "mean.dim", "_softmax.default",
    "sigmoid.default", "tanh.default", "hardswish.default"))}
Q8, BASE = "quantized_decomposed.", "et_vk."
QUANTIZED = {
    f"{Q8}quantize_per_tensor.default": _quantize,
    f"{Q8}dequantize_per_tensor.default": _dequantize,
    **dict.fromkeys((f"{BASE}q8ta_conv2d{kind}.default" for kind in ("", "_pw", "_dw")), _conv_q8),
    f"{BASE}q8ta_conv2d_transposed.default": _transposed_q8,
    f"{BASE}conv2d_q8ta_q8csw.default": _conv_of_floats,
    f"{BASE}q8ta_linear.default": _linear_q8,
    f"{BASE}q8ta_linear_gemv.default": _linear_q8,
    f"{BASE}linear_q8ta_q8csw.default": _linear_of_floats,
    f"{BASE}q8ta_add.default": _add_q8,
    f"{BASE}q8ta_relu.default": _relu_q8,
    f"{BASE}q8ta_pixel_shuffle.default": _shuffle_q8,
    f"{BASE}linear_q4gsw.default": grouped_linear,
    f"{BASE}linear_qcs4w.default": _channels,
    f"{BASE}linear_dq8ca_q4gsw.default": dynamic_linear,
    f"{BASE}embedding_q4gsw.default": embedding,
    "torchao.choose_qparams_affine.default": _qparams,
    "aten._weight_int8pack_mm.default": _int8_layer,
}
