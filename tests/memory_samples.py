"""Weights to pack, files to read, memory to read into."""

from __future__ import annotations

import math
import os
from dataclasses import replace

import numpy as np
import pytest

from vkrt.memory.reader import Reader, Transfer
from vkrt.memory.source import Source
from vkrt.ops import strided_copy
from vkrt.work.records import Prepack
from vkrt.work.tensor import NOWHERE, Constant, Operand, Storage, row_major

DTYPES = {1: np.uint8, 2: np.uint16, 4: np.uint32}
NAMES = {1: "int8", 2: "float16", 4: "float32"}

# Every strategy with some of its options, as arguments of `Reader`.
STRATEGIES = ("auto", "pread", "willneed", "readahead", "none")
WAYS = [*((name, {}) for name in STRATEGIES), ("pread", {"threads": 1}),
        ("auto", {"keep_cached": False, "threads": 20}),
        ("none", {"threads": 3, "keep_cached": False}), ("willneed", {"threads": 2, "window": 1})]


def reference(params, itemsize, data, rows=1) -> bytes:
    """What the prepack dispatch writes: every element decoded on its own."""
    dims, packed, count, base = (params[i] for i in (0, 5, 7, 11))
    source = np.frombuffer(data, DTYPES[itemsize])
    texels = -(-packed // 4)
    result = np.zeros((count // texels, texels * 4), source.dtype)
    e = np.arange(count // texels * packed)
    s = np.full(e.shape, base)
    for k in range(dims):
        size, stride = params[15 + 2 * k: 17 + 2 * k]
        s += (e if k == dims - 1 else e % size) * stride
        e = e // size
    result[:, :packed] = source[s].reshape(-1, packed)
    return result.tobytes()


def weight(sizes, order, itemsize) -> Prepack:
    """The record of a weight with these logical sizes, `order` in memory."""
    dtype = NAMES[itemsize]
    shape = Operand(NOWHERE, tuple(sizes), dtype, tuple(order))
    target = replace(shape, storage=Storage(0, "weight", shape.nbytes, dtype))
    source = Operand(NOWHERE, tuple(sizes), dtype, row_major(len(sizes)), raw=True)
    constant = Constant(0, math.prod(sizes) * itemsize, dtype)
    return strided_copy.prepack(constant, target, source, "w")


def random_bytes(count, seed=0) -> bytes:
    return np.random.default_rng(seed).integers(0, 256, count, np.uint8).tobytes()


class Target:
    """Memory to read into, with bytes around it that must stay as they are."""

    def __init__(self, nbytes: int):
        self.array = np.full(nbytes + 128, 0xA5, np.uint8)
        self.address = self.array.ctypes.data + 64

    def bytes(self) -> bytes:
        assert (self.array[:64] == 0xA5).all() and (self.array[-64:] == 0xA5).all()
        return self.array[64:-64].tobytes()


def read_bytes(reader: Reader, source: int, offset: int, nbytes: int) -> bytes:
    """Bytes of one of a reader's sources."""
    target = Target(nbytes)
    reader.read_transfer(Transfer(source, offset, nbytes, target.address))
    return target.bytes()


def make_cold(source: Source) -> None:
    """Takes the file out of the system's cache; skips the test where that is not possible."""
    fd = os.open(source.name, os.O_RDONLY)
    os.fsync(fd)
    os.close(fd)
    for _ in range(6):
        source.drop_cache(0, source.nbytes)
        if not any(source.resident(0, source.nbytes)):
            return
    pytest.skip("pages of this file system cannot be taken out of the cache")
