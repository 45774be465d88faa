"""Samples of layers with 4-bit weights: one row and many, groups and sizes of every kind."""

import numpy as np
from harness import Sample, by, integers, normal

RTOL = 2e-6


def packed(numbers, high_first=False, step=1) -> np.ndarray:
    """Rows of numbers from -8 to 7 as bytes, the rows filled with zeros to a multiple of `step`."""
    rows = np.pad(numbers, ((0, 0), (0, -numbers.shape[1] % step)))
    first, second = (rows[:, k::2] + 8 for k in ((1, 0) if high_first else (0, 1)))
    return (first | second << 4).astype(np.uint8)


def unpacked(weight, high_first=False) -> np.ndarray:
    """The numbers of rows of bytes."""
    low, high = (weight & 15).astype(np.int64), (weight >> 4).astype(np.int64)
    return np.stack((high, low) if high_first else (low, high), -1).reshape(len(weight), -1) - 8


def padded(array, step=4) -> np.ndarray:
    return np.pad(array, [(0, 0)] * (array.ndim - 1) + [(0, -array.shape[-1] % step)])


def grouped_linear(x, weight, scales, group, bias=None):
    columns = len(weight)
    matrix = (unpacked(weight)[:, :x.shape[-1]] * np.repeat(scales[:, :columns].T, group, 1))
    return x @ matrix.T + (0 if bias is None else bias[:columns])


def embedding(weight, scales, group, indices, low_first):
    rows = unpacked(weight, not low_first) * np.repeat(scales, group, 1)
    return rows[indices]


def _numbers(*sizes) -> np.ndarray:
    numbers = integers(*sizes, low=-8, high=8)
    if sizes[0] > 2:
        numbers[1] = 0
    return numbers


def _rows(*sizes) -> np.ndarray:
    """Normally distributed numbers; the second of several rows is zeros."""
    x = normal(*sizes)
    if len(sizes) > 1 and sizes[-2] > 2:
        x[..., 1, :] = 0
    return x


def _scales(*sizes) -> np.ndarray:
    return np.abs(normal(*sizes, seed=1, scale=0.1))


def grouped(sizes, columns, group, bias=False) -> list:
    """The arguments of a linear layer: x, weight, scales, group and bias."""
    depth = sizes[-1]
    vector = padded(normal(columns, seed=2)) if bias else None
    return [_rows(*sizes), packed(_numbers(columns, depth), step=8),
            padded(_scales(depth // group, columns)), group, vector]


def _grouped(sizes, columns, group, bias=False) -> Sample:
    name = f"{by(sizes)}-{columns}-{group}{'-biased' if bias else ''}"
    return Sample("et_vk.linear_q4gsw.default", grouped(sizes, columns, group, bias),
                  grouped_linear, constants=(1, 2, 4) if bias else (1, 2), rtol=RTOL, name=name)


def _whole_bias() -> Sample:
    """A bias of as many elements as there are columns, which are no whole texels."""
    args = [*grouped((2, 32), 6, 32)[:4], normal(6, seed=2)]
    return Sample("et_vk.linear_q4gsw.default", args, grouped_linear, constants=(1, 2, 4),
                  rtol=RTOL, name="whole bias")


def _channel(sizes, columns) -> Sample:
    args = [_rows(*sizes), packed(_numbers(columns, sizes[-1]), True), _scales(columns)]
    return Sample("et_vk.linear_qcs4w.default", args,
                  lambda x, weight, scales: x @ (unpacked(weight, True) * scales[:, None]).T,
                  constants=(1, 2), rtol=RTOL, name=f"{by(sizes)}-{columns}")


def _embedding(rows, size, group, indices, low_first=True, computed=False) -> Sample:
    args = [packed(_numbers(rows, size), not low_first), _scales(rows, size // group), group,
            np.asarray(indices, np.int32), low_first]
    return Sample("et_vk.embedding_q4gsw.default", args, embedding, dtype="float32",
                  constants=(0,) if computed else (0, 1), rtol=RTOL,
                  name=f"{rows}x{size}-{group}-{np.shape(indices)}{'' if low_first else '-high'}"
                       f"{'-computed' if computed else ''}")


SAMPLES = [
    # One row: groups of every usual size, columns that are no whole texels or tiles.
    _grouped((1, 32), 8, 32), _grouped((1, 96), 5, 32), _grouped((1, 1, 128), 30, 64, bias=True),
    _grouped((64,), 1, 64), _grouped((1, 256), 12, 128, bias=True), _grouped((1, 512), 21, 256),
    _grouped((1, 576), 100, 32),
    # An odd number of groups in a line.
    _grouped((1, 192), 7, 64), _grouped((1, 384), 9, 128, bias=True), _grouped((1, 768), 5, 256),
    # Many rows, and leading dimensions.
    _grouped((2, 32), 9, 32), _grouped((7, 64), 6, 64, bias=True), _grouped((3, 5, 128), 24, 32),
    _grouped((40, 256), 20, 256), _grouped((33, 96), 17, 32, bias=True), _whole_bias(),
    _grouped((0, 32), 8, 32), _grouped((130, 64), 66, 32, bias=True),
    _grouped((9, 192), 11, 64), _grouped((5, 384), 7, 128, bias=True), _grouped((35, 768), 13, 256),
    _grouped((66, 64), 35, 64, bias=True), _grouped((18, 128), 67, 128), _grouped((3, 256), 1, 256),
    # Groups that are not texels of the weight; lines that are padded, and odd ones.
    _grouped((1, 48), 7, 16), _grouped((5, 20), 6, 20, bias=True), _grouped((1, 10), 3, 5),
    _grouped((2, 3, 12), 9, 4), _grouped((4, 33), 2, 11), _grouped((3, 1), 5, 1),
    _channel((1, 64), 9), _channel((4, 96), 13), _channel((1, 30), 8), _channel((9, 18), 3),
    _channel((2, 2, 2), 1), _channel((64,), 10),
    _embedding(11, 64, 32, [3, 0, 10]), _embedding(11, 64, 32, [3, -1], low_first=False),
    _embedding(5, 30, 10, [[4, 1, 0], [2, 2, -5]]), _embedding(7, 6, 2, [6, 1], low_first=False),
    _embedding(3, 2, 1, 2), _embedding(9, 12, 12, [], low_first=False),
    _embedding(6, 20, 5, [5, 0, 3, 1, 2], computed=True),
    _embedding(7, 192, 64, [6, 0, 3]), _embedding(5, 384, 128, [[4, 1], [0, -1]]),
    _embedding(3, 768, 256, 2, low_first=False), _embedding(5, 64, 64, [1, 4], computed=True),
]
