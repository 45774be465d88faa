"""Samples of quantization with a scale for each channel, row or block. A scale's inverse is a
division, which a driver may round another way: scales are powers of two, so that it is exact.
"""

import numpy as np
from harness import Sample, integers


def powers(*sizes: int) -> np.ndarray:
    return np.exp2(integers(*sizes, low=-6, high=1)).astype(np.float32)


def _spread(array: np.ndarray | None, wanted, sizes) -> np.ndarray:
    """Scales or zeros of sizes `wanted`, one for each block of a tensor of `sizes`, as float64."""
    if array is None:
        return np.zeros([1] * len(sizes))
    result = np.asarray(array, np.float64).reshape(wanted)
    for axis, (size, count) in enumerate(zip(sizes, wanted)):
        result = result.repeat(size // max(count, 1), axis)
    return result


def _pair(name: str, sizes, wanted, scales, zeros, place, numbers, *, least=-128, most=127,
          adds_first=False, constants=()) -> list[Sample]:
    """Samples of dequantizing, and of quantizing where there are zeros.

    Args:
        wanted: sizes to which scales and zeros are brought.
        place: makes the arguments of x, scales and zeros.
        numbers: makes further arguments of the bounds.
    """
    def quantize(args) -> np.ndarray:
        x, scale, zero = args
        steps = np.asarray(x, np.float64) / _spread(scale, wanted, sizes)
        offset = _spread(zero, wanted, sizes)
        whole = np.round(steps + offset) if adds_first else np.round(steps) + offset
        return np.clip(whole, least, most)

    dtype = np.int8 if least < 0 else np.uint8
    # Halves of steps are on the way, and what is beyond both ends.
    halves = integers(*sizes, low=-700, high=700) / 2
    x = (halves * _spread(scales, wanted, sizes)).astype(np.float32)
    q = integers(*sizes, low=least, high=most + 1).astype(dtype)
    label = "-".join(map(str, (*sizes, *wanted, least))) + "-plain" * (zeros is None)

    def of(args):
        return [a for a in args if isinstance(a, np.ndarray)] + [None] * (zeros is None)

    def dequantize(args) -> np.ndarray:
        x, scale, zero = args
        steps = np.asarray(x, np.float64) - _spread(zero, wanted, sizes)
        return steps * _spread(scale, wanted, sizes)

    further = numbers(least, most)
    result = [Sample(name.format("de"), [*place(q, scales, zeros), *further, None],
                     lambda *args: dequantize(of(args)), dtype="float32", name=label, rtol=0.0,
                     constants=constants)]
    if zeros is not None:
        result.append(Sample(name.format(""), [*place(x, scales, zeros), *further],
                             lambda *args: quantize(of(args)).astype(dtype),
                             dtype=np.dtype(dtype).name, name=label, constants=constants))
    return result


def _channels(sizes, axis: int, *, has_zeros: bool = True, **others) -> list[Sample]:
    count = sizes[axis]
    return _pair("quantized_decomposed.{}quantize_per_channel.default", sizes,
                 [size if d == axis % len(sizes) else 1 for d, size in enumerate(sizes)],
                 powers(count), integers(count) if has_zeros else None,
                 lambda x, scales, zeros: [x, scales, zeros, axis],
                 lambda least, most: [least, most, None],
                 constants=(1, 2) if has_zeros else (1,), **others)


def _tokens(sizes, **others) -> list[Sample]:
    wanted = [*sizes[:-1], 1]
    return _pair("quantized_decomposed.{}quantize_per_token.default", sizes, wanted,
                 powers(*wanted), integers(*wanted), lambda x, scales, zeros: [x, scales, zeros],
                 lambda least, most: [least, most, None], adds_first=True, **others)


def _whole(sizes, lying=(), **others) -> list[Sample]:
    return _pair("quantized_decomposed.{}quantize_per_tensor.tensor", sizes, [1] * len(sizes),
                 np.asarray(powers(*lying)), np.asarray(integers(*lying)),
                 lambda x, scales, zeros: [x, scales, zeros],
                 lambda least, most: [least, most, None], **others)


def _blocks(sizes, block, lying, *, zeros=np.int32, **others) -> list[Sample]:
    wanted = [size // part for size, part in zip(sizes, block)]
    return _pair("torchao.{}quantize_affine.default", sizes, wanted, powers(*lying),
                 None if zeros is None else integers(*lying).astype(zeros),
                 lambda x, scales, zeros: [x, list(block), scales, zeros, None],
                 lambda least, most: [least, most], **others)


SAMPLES = [
    *_channels((6, 5, 3, 3), 0), *_channels((2, 7, 4, 5), 1), *_channels((3, 10), -1),
    *_channels((12, 8), 0, has_zeros=False), *_channels((5, 6), 0, least=0, most=255),
    *_channels((9,), 0), *_channels((0, 4), 1),
    *_tokens((5, 12)), *_tokens((2, 3, 7)), *_tokens((4, 4)),
    *_tokens((3, 9), least=0, most=255),
    *_whole((2, 5, 7)), *_whole((9,), (1,), least=0, most=255), *_whole((3, 8), constants=(1, 2)),
    *_blocks((4, 12), (1, 12), (4,)), *_blocks((2, 3, 10), (1, 1, 10), (2, 3, 1), zeros=np.int8),
    *_blocks((6, 5), (6, 5), (1,)), *_blocks((6, 8), (6, 1), (1, 8), zeros=None),
    *_blocks((4, 7), (1, 7), (4, 1), least=0, most=255),
    # Blocks that divide dimensions.
    *_blocks((4, 64), (1, 32), (4, 2)), *_blocks((6, 10), (3, 5), (2, 2), zeros=np.int8),
    *_blocks((3, 6, 4), (1, 2, 4), (3, 3, 1), zeros=None), *_blocks((2, 9), (2, 3), (1, 3)),
    *_blocks((0, 8), (1, 4), (0, 2)),
]
