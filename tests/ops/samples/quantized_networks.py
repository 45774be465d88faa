"""Samples of quantized tensors: borders, convolutions, linear layers, sums, shuffling.

What comes out is worked out in fp32, step by step as the operators say, and is the same bits.
"""

import math
from dataclasses import replace

import numpy as np
import reference
from harness import Sample, by, integers, normal

from samples.linear_q4 import padded as aligned


def bytes_of(*sizes: int, seed: int = 0, low: int = -128, high: int = 128) -> np.ndarray:
    """int8 numbers in [low, high); the first ones are the ends of the range."""
    numbers = integers(*sizes, low=low, high=high, seed=seed).astype(np.int8)
    numbers.flat[:2] = low, high - 1
    return numbers


def quantized(real, scale: float, zero: int, least: int = -128, most: int = 127) -> np.ndarray:
    inverse = np.float32(1 / scale)
    whole = np.round(np.asarray(real, np.float32) * inverse) + np.float32(zero)
    return np.clip(whole, least, most).astype(np.int8 if least < 0 else np.uint8)


def real(q: np.ndarray, scale: float, zero: int) -> np.ndarray:
    """What quantized numbers stand for."""
    return (q.astype(np.int32) - zero).astype(np.float32) * np.float32(scale)


def ended(sums: np.ndarray, scale: float, scales, bias, activation: str = "none") -> np.ndarray:
    """Sums [.., C] of (x - zero) * w as real numbers."""
    channels = sums.shape[-1]
    factors = np.float32(scale) * np.asarray(scales, np.float32)[:channels]
    result = sums.astype(np.float32) * factors
    if bias is not None:
        result = result + np.asarray(bias, np.float32)[:channels]
    return np.maximum(result, np.float32(0)) if activation == "relu" else result


# Borders

# scale, zero, least, most: the ends of the range as zeros, a narrow range, zeros as Doubles
STEPS = [(0.02, 3, -128, 127), (0.5, -128, -128, 127), (1e-3, 127, -128, 127),
         (0.25, 0.0, -127, 127), (0.1, -5, -8, 7)]
UNSIGNED = [(0.03, 128, 0, 255), (0.5, 0, 0, 255), (0.01, 255.0, 0, 127)]
SIZES = [(2, 7, 5, 6), (3, 9), (1, 12, 4, 4), (5,), (), (0, 3)]


def _borders(sizes, step) -> list[Sample]:
    scale, zero, least, most = step
    # Halves of steps are on the way, and what is beyond both ends.
    x = np.asarray(integers(*sizes, low=-700, high=700) * np.float32(scale) / 2, np.float32)
    q = integers(*sizes, low=least, high=most + 1).astype(np.int8 if least < 0 else np.uint8)
    name = f"{by(sizes)}-{scale}-{zero}-{least}-{most}"
    space = "quantized_decomposed"
    return [
        Sample(f"{space}.quantize_per_tensor.default", [x, scale, zero, least, most, None],
               lambda x, *_: quantized(x, scale, int(zero), least, most), dtype=str(q.dtype),
               name=name),
        Sample(f"{space}.dequantize_per_tensor.default",
               [q, scale, zero, least, most, None, None],
               lambda q, *_: real(q, scale, int(zero)), dtype="float32", name=name, rtol=0.0),
    ]


def _to_half(sizes) -> Sample:
    q = bytes_of(*sizes)
    return Sample("quantized_decomposed.dequantize_per_tensor.default",
                  [q, 0.25, -3, -128, 127, None, None], lambda q, *_: real(q, 0.25, -3),
                  dtype="float16", name="half")


# Convolutions

# x, weight, stride, padding, dilation, groups, bias, zero of x, activation
CONVOLUTIONS = [
    ((1, 8, 9, 16), (16, 8, 3, 3), (1, 1), (1, 1), (1, 1), 1, True, 5, "none"),
    ((1, 3, 17, 19), (10, 3, 3, 3), (2, 2), (1, 1), (1, 1), 1, True, -128, "relu"),
    ((2, 5, 7, 7), (33, 5, 3, 3), (1, 1), (1, 1), (1, 1), 1, False, 127, "none"),
    ((1, 12, 14, 14), (24, 12, 5, 5), (1, 1), (2, 2), (1, 1), 1, True, -3.0, "relu"),
    ((1, 1, 9, 11), (7, 1, 5, 5), (1, 1), (2, 2), (1, 1), 1, True, -73, "none"),
    ((1, 6, 4, 4), (130, 6, 3, 3), (1, 1), (1, 1), (1, 1), 1, True, 0, "none"),
    ((3, 9, 2, 2), (13, 9, 2, 2), (1, 1), (1, 1), (1, 1), 1, True, 1, "none"),
    ((2, 4, 11, 8), (5, 4, 3, 5), (2, 3), (1, 2), (1, 1), 1, True, 100, "none"),
    ((1, 4, 2, 3), (4, 4, 3, 3), (1, 1), (4, 5), (1, 1), 1, True, 9, "none"),
    ((1, 5, 13, 13), (8, 5, 3, 2), (2, 1), (3, 1), (3, 4), 1, False, -1, "relu"),
    # pointwise, with a stride, on one pixel, and padded
    ((1, 16, 14, 14), (96, 16, 1, 1), (1, 1), (0, 0), (1, 1), 1, True, -128, "none"),
    ((2, 13, 7, 7), (35, 13, 1, 1), (1, 1), (0, 0), (1, 1), 1, True, 77, "relu"),
    ((1, 30, 1, 1), (21, 30, 1, 1), (1, 1), (0, 0), (1, 1), 1, False, 2, "none"),
    ((2, 12, 9, 7), (18, 12, 1, 1), (2, 2), (0, 0), (1, 1), 1, True, -60, "none"),
    ((1, 12, 5, 6), (3, 12, 1, 1), (1, 1), (1, 1), (1, 1), 1, True, 60, "none"),
    # groups, of whole texels and not; as many groups as channels
    ((1, 16, 8, 8), (24, 8, 3, 3), (1, 1), (1, 1), (1, 1), 2, True, 11, "none"),
    ((2, 16, 7, 7), (16, 4, 1, 1), (1, 1), (0, 0), (1, 1), 4, True, -11, "relu"),
    ((1, 6, 9, 9), (8, 3, 3, 3), (2, 1), (1, 1), (1, 1), 2, True, -128, "none"),
    ((2, 10, 8, 8), (30, 5, 3, 3), (2, 2), (1, 1), (2, 2), 2, False, 127, "none"),
    ((1, 5, 8, 8), (10, 1, 3, 3), (1, 1), (1, 1), (1, 1), 5, True, 30, "none"),
    ((1, 5, 8, 8), (5, 1, 3, 3), (1, 1), (1, 1), (1, 1), 5, True, 30, "relu"),
    # inputs by 16 at a time, also in groups, one of which has results that are no whole texels
    ((1, 16, 7, 9), (12, 16, 3, 3), (1, 1), (1, 1), (1, 1), 1, True, 21, "none"),
    ((2, 48, 5, 6), (9, 48, 2, 3), (2, 1), (1, 2), (1, 1), 1, True, -128, "relu"),
    ((1, 32, 9, 10), (24, 16, 3, 3), (1, 1), (1, 1), (1, 1), 2, True, 127, "none"),
    ((1, 32, 5, 5), (6, 16, 3, 3), (1, 1), (1, 1), (1, 1), 2, True, -9, "none"),
    ((2, 16, 7, 9), (37, 16, 3, 2), (1, 1), (1, 2), (1, 1), 1, True, -101, "none"),
    ((1, 48, 9, 5), (80, 48, 1, 1), (1, 1), (0, 0), (1, 1), 1, True, 99, "relu"),
    # no pictures
    ((0, 4, 5, 5), (6, 4, 3, 3), (1, 1), (1, 1), (1, 1), 1, True, 3, "none"),
]

DEPTHWISE = [
    ((1, 12, 14, 14), (12, 1, 3, 3), (1, 1), (1, 1), (1, 1), 12, True, -128, "none"),
    ((2, 8, 15, 13), (8, 1, 3, 3), (2, 2), (1, 1), (1, 1), 8, True, 127, "relu"),
    ((1, 6, 7, 7), (6, 1, 7, 7), (1, 1), (3, 3), (1, 1), 6, True, 4.0, "none"),
    ((1, 9, 20, 20), (9, 1, 5, 5), (2, 2), (2, 2), (1, 1), 9, False, -9, "none"),
    ((1, 8, 16, 16), (8, 1, 3, 3), (1, 1), (2, 2), (2, 2), 8, True, 31, "relu"),
    ((1, 8, 9, 1), (8, 1, 3, 1), (1, 1), (1, 0), (1, 1), 8, True, -31, "none"),
    ((1, 4, 5, 40), (4, 1, 2, 15), (1, 2), (0, 3), (1, 1), 4, True, 90, "none"),
    ((1, 1, 5, 6), (1, 1, 3, 3), (1, 1), (1, 1), (1, 1), 1, True, 8, "none"),
    # as many taps as floats add up exactly, and more
    ((1, 4, 36, 18), (4, 1, 34, 15), (1, 1), (0, 0), (1, 1), 4, True, -128, "none"),
    ((1, 4, 37, 18), (4, 1, 36, 15), (1, 1), (0, 0), (1, 1), 4, True, 127, "none"),
]

# x, weight [I, O / groups, kh, kw], stride, padding, dilation, output padding, groups, bias, ..
TRANSPOSED = [
    ((1, 16, 8, 16), (16, 24, 4, 4), (2, 2), (1, 1), (1, 1), (0, 0), 1, True, 5, "relu"),
    ((2, 10, 5, 6), (10, 7, 3, 3), (2, 2), (1, 1), (1, 1), (1, 1), 1, False, -128, "none"),
    ((1, 3, 7, 9), (3, 12, 2, 2), (2, 2), (0, 0), (1, 1), (0, 0), 1, True, 127, "none"),
    ((1, 8, 1, 1), (8, 9, 4, 4), (1, 1), (0, 0), (1, 1), (0, 0), 1, True, -2, "none"),
    ((2, 5, 4, 7), (5, 6, 3, 2), (1, 3), (2, 0), (1, 1), (0, 2), 1, True, 40, "none"),
    ((1, 6, 3, 4), (6, 8, 2, 3), (5, 4), (0, 1), (1, 1), (4, 3), 1, True, -40, "relu"),
    ((1, 6, 5, 6), (6, 10, 3, 3), (2, 2), (2, 1), (2, 4), (1, 3), 1, True, 1, "none"),
    ((1, 16, 6, 6), (16, 12, 4, 4), (2, 2), (1, 1), (1, 1), (0, 0), 2, True, 8, "none"),
    ((1, 6, 5, 6), (6, 4, 3, 3), (2, 2), (1, 1), (1, 1), (0, 1), 2, True, -8, "none"),
    ((2, 8, 5, 5), (8, 1, 3, 5), (1, 3), (1, 2), (2, 2), (0, 1), 8, False, 0, "none"),
]


def _ends(channels: int, taps: int, has_bias: bool) -> tuple:
    """Scales and a bias for sums of so many products: some results are beyond the range."""
    spread = 0.004 / math.sqrt(taps)
    scales = (np.abs(normal(channels, seed=3)) * spread + spread / 2).astype(np.float32)
    return scales, normal(channels, seed=4) * 0.3 if has_bias else None


def _arguments(x, weight, matrix, has_bias, zero, activation) -> tuple[list, tuple[float, int]]:
    """The arguments up to the bias, and the result's scale and zero."""
    channels = weight.shape[0]
    scales, bias = _ends(channels, weight[0].size, has_bias)
    sums = weight.reshape(channels, -1).astype(np.int32).sum(1, dtype=np.int32)
    step = (0.011, -128 if activation == "relu" else 7)
    padded = [None if v is None else aligned(v) for v in (sums, scales, bias)]
    return [x, 0.03, zero, matrix, *padded[:2], *step, padded[2]], step


def _name(row) -> str:
    sizes, weight, *others = row
    return "-".join([by(sizes), by(weight),
                     *map(str, others[-4:])]).replace(" ", "")


def _convolution(op: str, row) -> Sample:
    sizes, weight_sizes, stride, padding, dilation, *extra, groups, has_bias, zero, act = row
    x, weight = bytes_of(*sizes), bytes_of(*weight_sizes, seed=1, low=-127)
    pairs = [list(p) for p in (weight_sizes[2:], stride, padding, *extra, dilation)]
    if op.endswith("transposed.default"):
        # [I, O / g, kh, kw] as [O, I / g, kh, kw]
        inputs, each = weight_sizes[0] // groups, weight_sizes[1]
        rows = weight.reshape(groups, inputs, each, *weight_sizes[2:]).swapaxes(1, 2)
        rows = rows.reshape(groups * each, inputs, *weight_sizes[2:])
    else:
        rows = weight
    channels = rows.shape[0]
    matrix = (rows[:, 0].transpose(1, 2, 0) if op.endswith("dw.default") else
              rows.transpose(0, 2, 3, 1).reshape(channels, -1))
    args, step = _arguments(x, rows, aligned(matrix), has_bias, zero, act)

    def expect(x, scale, zero, _matrix, _sums, scales, _scale, _zero, bias, *_):
        offsets = x.astype(np.float64) - int(zero)
        if extra:
            sums = reference.conv_transpose(offsets, weight, None, stride, padding, dilation,
                                            extra[0], groups)
        else:
            sums = reference.conv(offsets, weight, None, stride, padding, dilation, groups)
        result = ended(np.moveaxis(sums, 1, -1), scale, scales, bias, act)
        return np.moveaxis(quantized(result, *step), -1, 1)

    constants = (3, 4, 5, 8) if has_bias else (3, 4, 5)
    return Sample(op, [*args, *pairs, groups, act], expect, constants=constants, name=_name(row))


def _older(sample: Sample) -> Sample:
    """A convolution as executorch 1.1 writes it: without an activation, its sums of a depthwise one
    those of each row of the kernel."""
    args, channels = list(sample.args[:-1]), sample.args[0].shape[1]
    name = "conv2d_q8ta_q8csw_q8to"
    if sample.op.endswith("dw.default"):
        name += "_dw"
        args[4] = args[3][..., :channels].sum(1, dtype=np.int32)
    return replace(sample, op=f"et_vk.{name}.default", args=args)


def _of_floats(row) -> Sample:
    """A convolution as executorch 1.0 writes it: floats come in and go out."""
    sizes, weight_sizes, *_, has_bias, _, _ = row
    quantized_ = _convolution("et_vk.q8ta_conv2d.default", row)
    x, scale, zero, *constants, _, _, bias, kernel, stride, padding, dilation, groups, _ = (
        quantized_.args)
    weight = bytes_of(*weight_sizes, seed=1, low=-127)

    def expect(x, scale, zero, _matrix, _sums, scales, bias, *_):
        offsets = quantized(x, scale, int(zero)).astype(np.float64) - int(zero)
        sums = reference.conv(offsets, weight, None, stride, padding, dilation, groups)
        return np.moveaxis(ended(np.moveaxis(sums, 1, -1), scale, scales, bias), -1, 1)

    args = [normal(*sizes, scale=2.0), scale, zero, *constants, bias, kernel, stride, padding,
            dilation, groups]
    return Sample("et_vk.conv2d_q8ta_q8csw.default", args, expect, name=quantized_.name,
                  constants=(3, 4, 5, 6) if has_bias else (3, 4, 5))


def _of_convolutions() -> list[Sample]:
    base = "et_vk.q8ta_conv2d"
    silent = [_convolution(f"{base}{kind}.default", row)
              for kind, rows in (("", CONVOLUTIONS), ("_dw", DEPTHWISE))
              for row in rows if row[-1] == "none"]
    plain = [row for row in CONVOLUTIONS if row[1][2:] == (1, 1) and row[2] == (1, 1)
             and row[3] == (0, 0)]
    return [*(_convolution(f"{base}.default", row) for row in CONVOLUTIONS),
            *(_convolution(f"{base}_pw.default", row) for row in plain),
            *(_convolution(f"{base}_dw.default", row) for row in DEPTHWISE),
            *(_convolution(f"{base}_transposed.default", row) for row in TRANSPOSED),
            *map(_older, silent), *map(_of_floats, CONVOLUTIONS)]


# Linear layers

# x, columns of the result, bias, zero of x, activation
LINEAR = [((5, 64), 48, True, 3, "none"), ((4, 37), 10, True, -128, "relu"),
          ((2, 3, 20), 33, False, 127, "none"), ((1, 64), 50, True, -7.0, "none"),
          ((1, 30), 9, False, 9, "relu"), ((21,), 6, True, 0, "none"),
          ((70, 16), 130, True, 60, "none"), ((33, 20), 35, True, -100, "none"),
          ((0, 8), 4, True, 1, "none")]


def _linear(op: str, row) -> Sample:
    sizes, columns, has_bias, zero, act = row
    x, weight = bytes_of(*sizes), bytes_of(columns, sizes[-1], seed=1, low=-127)
    args, step = _arguments(x, weight, weight, has_bias, zero, act)

    def expect(x, scale, zero, weight, _sums, scales, _scale, _zero, bias, _act):
        sums = (x.astype(np.float64) - int(zero)) @ weight.T.astype(np.float64)
        return quantized(ended(sums, scale, scales, bias, act), *step)

    constants = (3, 4, 5, 8) if has_bias else (3, 4, 5)
    return Sample(op, [*args, act], expect, constants=constants, name=_name((sizes, (), *row[1:])))


def _float_linear(row, least: int = -127) -> Sample:
    """A linear layer as executorch 1.0 writes it. Where no weight is negative, sums are as long as
    they can be, and inputs as well."""
    sizes, columns, has_bias, zero, _ = row
    weight = bytes_of(columns, sizes[-1], seed=1, low=least)
    x = normal(*sizes, scale=2.0) - (20 if least > 0 else 0)
    args, _ = _arguments(x, weight, weight, has_bias, zero, "none")

    def expect(x, scale, zero, weight, _sums, scales, bias):
        offsets = quantized(x, scale, int(zero)).astype(np.float64) - int(zero)
        return ended(offsets @ weight.T.astype(np.float64), scale, scales, bias)

    constants = (3, 4, 5, 6) if has_bias else (3, 4, 5)
    return Sample("et_vk.linear_q8ta_q8csw.default", [*args[:6], args[8]], expect,
                  constants=constants, name=_name((sizes, (), *row[1:])))


# Element by element

# sizes of both, scale and zero of both and of the sum, alpha
ADDITIONS = [((2, 7, 5, 6), (2, 7, 5, 6), 0.02, 3, 0.03, -4, 0.05, 1, 1),
             ((1, 12, 4, 4), (1, 12, 4, 4), 0.1, -128, 0.1, 127, 0.05, -128, 1.0),
             ((3, 9), (3, 9), 0.5, 0.0, 0.01, 5, 0.02, 127, -0.5),
             ((2, 6, 5, 5), (1, 6, 1, 1), 0.02, 3, 0.03, -4, 0.05, 1, 2),
             ((4, 1), (3, 4, 5), 0.02, 0, 0.03, -4, 0.05, 1, 1), ((7,), (7,), 1, 0, 1, 0, 1, 0, 1)]


def _addition(row, op: str = "q8ta_add") -> Sample:
    first, second, *steps, alpha = row

    def expect(a, b, scale_a, zero_a, scale_b, zero_b, scale, zero, alpha):
        total = real(a, scale_a, int(zero_a)) + np.float32(alpha) * real(b, scale_b, zero_b)
        return quantized(total, scale, zero)

    name = "-".join(map(str, row)).replace(" ", "")
    return Sample(f"et_vk.{op}.default", [bytes_of(*first), bytes_of(*second, seed=1), *steps,
                                       alpha], expect, name=name)


def _relu(sizes, *steps) -> Sample:
    def expect(x, scale, zero, new_scale, new_zero):
        return quantized(np.maximum(real(x, scale, int(zero)), 0), new_scale, new_zero)

    return Sample("et_vk.q8ta_relu.default", [bytes_of(*sizes), *steps], expect,
                  name="-".join(map(str, (sizes, *steps))).replace(" ", ""))


def _shuffle(sizes, factor, *steps) -> Sample:
    def expect(x, scale, zero, inverse, new_zero, factor):
        shuffled = reference.pixel_shuffle(x.astype(np.float64), factor).astype(np.int64)
        return quantized(real(shuffled, scale, int(zero)), 1 / inverse, new_zero)

    return Sample("et_vk.q8ta_pixel_shuffle.default", [bytes_of(*sizes), *steps, factor], expect,
                  name="-".join(map(str, (sizes, factor, *steps))).replace(" ", ""))


SAMPLES = [
    *(sample for step in STEPS for sample in _borders(SIZES[0], step)),
    *(sample for sizes in SIZES[1:] for sample in _borders(sizes, STEPS[0])),
    *(sample for step in UNSIGNED for sample in _borders(SIZES[0], step)),
    _to_half((2, 3, 4, 5)),
    *_of_convolutions(),
    *(_linear("et_vk.q8ta_linear.default", row) for row in LINEAR),
    *(_linear("et_vk.q8ta_linear_gemv.default", row) for row in LINEAR if row[0][0] == 1),
    *(_float_linear(row) for row in LINEAR),
    _float_linear(((1, 4096), 64, True, 127, "none"), least=100),
    *map(_addition, ADDITIONS), *(_addition(row, "add_q8ta_q8ta_q8to") for row in ADDITIONS),
    _relu((2, 7, 5, 6), 0.02, 3, 0.05, -128), _relu((3, 9), 0.1, -128, 0.03, -128),
    _relu((2, 5), 0.1, 127, 0.1, 5.0), _relu((), 0.5, 0, 0.5, 0),
    _shuffle((1, 12, 5, 6), 2, 0.02, 3, 1 / 0.02, 3), _shuffle((2, 9, 4, 4), 3, 0.02, 3, 20.0, -7),
    _shuffle((2, 20, 3, 5), 2, 0.1, -128, 10.5, -128), _shuffle((8, 3, 4), 2, 0.02, 3, 20.0, 3),
]
