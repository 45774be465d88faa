"""Samples of layers with 8-bit weights, and of those that quantize their input."""

import numpy as np
from harness import Sample, by, integers, normal

from samples.linear_q4 import RTOL, grouped, padded, unpacked


def qparams(x, _mapping, _block, _dtype, low, high, smallest, _scale, _zero, keep):
    """A scale and a zero point for each row."""
    bottom, top = (np.minimum(x.min(-1), 0), np.maximum(x.max(-1), 0)) if x.shape[-1] else (
        np.zeros(x.shape[:-1]),) * 2
    scale = np.maximum((top - bottom) / (high - low), 2.0 ** -126 if smallest is None else smallest)
    zero_point = np.clip(low - np.rint(bottom / scale), low, high).astype(np.int8)
    return [a[..., None] if keep else a for a in (scale, zero_point)]


def dynamic_linear(x, scale, zero_point, weight, sums, scales, group, bias=None):
    """By whole numbers, and the sums of the weights for the zero points."""
    columns, depth = len(weight), x.shape[-1]
    zero_point = zero_point[..., None].astype(np.int64)
    steps = np.clip(np.rint(x / scale[..., None]) + zero_point, -128, 127)
    products = np.einsum("...gk,ngk->...gn", steps.reshape(*x.shape[:-1], -1, group),
                         unpacked(weight)[:, :depth].reshape(columns, -1, group))
    products -= zero_point[..., None] * sums[:, :columns]
    result = scale[..., None] * (products * scales[:, :columns]).sum(-2)
    return result + (0 if bias is None else bias[:columns])


def _qparams(*sizes, low=-128, high=127, smallest=None, keep=False, shift=0.0, zeros=False,
             zero="int8", **options) -> Sample:
    x = normal(*sizes) + np.float32(shift)
    if zeros:
        x[..., ::2, :] = 0
    rows = (*sizes[:-1], *[1] * keep)
    name = by(sizes) + f" {low} {high} {shift}{' kept' * keep}{' zeros' * zeros}"
    return Sample("torchao.choose_qparams_affine.default",
                  [x, "ASYMMETRIC", [*[1] * (len(sizes) - 1), sizes[-1]], None, low, high, smallest,
                   None, None, keep], qparams, outs=[(rows, "float32"), (rows, zero)],
                  name=f"{name}{zero.removeprefix('int8')}", **options)


def _tensor_qparams(*sizes, low=-128, high=127, shift=0.0, zero="int32") -> Sample:
    """One scale and one zero point for all of a tensor."""
    def chosen(x, low, high, smallest, _dtype):
        return qparams(x.reshape(1, -1), *[None] * 3, low, high, smallest, None, None, False)

    return Sample("quantized_decomposed.choose_qparams.tensor",
                  [normal(*sizes) + np.float32(shift), low, high, 2.0 ** -12, None], chosen,
                  outs=[((1,), "float32"), ((1,), zero)],
                  name=by(sizes) + f" {low} {high} {shift} {zero}")


def _token_qparams(*sizes, zero="int32") -> Sample:
    """A scale and a zero point for each row, which stays a dimension."""
    def chosen(x, _dtype):
        return qparams(x, *[None] * 3, -128, 127, 2.0 ** -23, None, None, True)

    rows = (*sizes[:-1], 1)
    return Sample("quantized_decomposed.choose_qparams_per_token_asymmetric.default",
                  [normal(*sizes), None], chosen,
                  outs=[(rows, "float32"), (rows, zero)], name=by(sizes) + zero)


def _dynamic(sizes, columns, group, bias=False) -> Sample:
    x, weight, scales, group, vector = grouped(sizes, columns, group, bias)
    scale, zero_point = qparams(x, *[None] * 3, -128, 127, 1e-4, None, None, False)
    sums = unpacked(weight)[:, :sizes[-1]].reshape(columns, -1, group).sum(-1).T
    args = [x, np.asarray(scale, np.float32), np.asarray(zero_point), weight,
            padded(sums.astype(np.int32), 8), scales, group, vector]
    return Sample("et_vk.linear_dq8ca_q4gsw.default", args, dynamic_linear, dtype="float32",
                  constants=(3, 4, 5, 7) if bias else (3, 4, 5), rtol=RTOL,
                  name=f"{by(sizes)}-{columns}-{group}{'-biased' if bias else ''}")


def _int8(sizes, columns, constants=(1, 2)) -> Sample:
    weight = integers(columns, sizes[-1], low=-128, high=128).astype(np.int8)
    args = [normal(*sizes), weight, np.abs(normal(columns, seed=1, scale=0.01))]
    return Sample("aten._weight_int8pack_mm.default", args,
                  lambda x, weight, scales: x @ weight.T.astype(np.float64) * scales,
                  constants=constants, rtol=RTOL, name=f"{by(sizes)}-{columns}")


SAMPLES = [
    _qparams(1, 64), _qparams(2, 7, 30), _qparams(5, 3), _qparams(9),
    _qparams(3, 5, 16, keep=True), _qparams(6, 20, low=-8, high=7),
    _qparams(6, 20, low=0, high=127),
    # Rows of which 0 is an end, or everything.
    _qparams(4, 12, shift=9.0), _qparams(4, 12, shift=-9.0),
    _qparams(5, 8, smallest=1e-4, zeros=True), _qparams(5, 8, zeros=True, half=False),
    _qparams(0, 4), _qparams(1, 4000), _qparams(3, 7, zero="int32"),
    _tensor_qparams(3, 7), _tensor_qparams(2, 3, 5, zero="int8"), _tensor_qparams(30),
    _tensor_qparams(6, 20, low=-8, high=7), _tensor_qparams(4, 6, shift=9.0), _tensor_qparams(1),
    _tensor_qparams(5, 400, shift=-9.0), _token_qparams(3, 7),
    _token_qparams(2, 3, 16, zero="int8"),
    _dynamic((1, 64), 9, 32), _dynamic((3, 5, 64), 20, 64, bias=True), _dynamic((6, 128), 8, 128),
    _dynamic((1, 20), 6, 20, bias=True), _dynamic((7, 48), 5, 16), _dynamic((32,), 4, 32),
    _dynamic((1, 192), 7, 64), _dynamic((1, 384), 9, 128, bias=True), _dynamic((1, 768), 5, 256),
    _dynamic((9, 192), 11, 64, bias=True), _dynamic((5, 384), 7, 128), _dynamic((35, 768), 13, 256),
    _int8((1, 64), 9), _int8((1, 30), 20), _int8((7, 18), 5), _int8((2, 3, 5), 11),
    _int8((40, 64), 33), _int8((16,), 6), _int8((0, 8), 4),
]
