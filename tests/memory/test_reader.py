"""Reader: the same bytes by every strategy, the window, and what happens when reading fails."""

from __future__ import annotations

import gc
import mmap
import os

import numpy as np
import pytest
from test_packing import weight

from vkrt.memory.packing import Packing, pack_bytes
from vkrt.memory.reader import Reader, Transfer, fail_read_after
from vkrt.memory.source import Source

PAGE = mmap.PAGESIZE
STRATEGIES = ("pread", "willneed", "readahead", "none")
WAYS = [*((name, {}) for name in STRATEGIES), ("auto", {}), ("pread", {"threads": 1}),
        ("pread", {"direct": True}), ("pread", {"keep_cached": False}),
        ("none", {"threads": 3, "keep_cached": False}), ("willneed", {"threads": 2, "window": 1})]


@pytest.fixture(autouse=True)
def nothing_left():
    """No file stays open, and no ordered failure."""
    gc.collect()
    before = len(os.listdir("/proc/self/fd"))
    yield
    fail_read_after(-1)
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.fixture(scope="module")
def data():
    return np.random.default_rng(5).integers(0, 256, 9_000_001, np.uint8)


@pytest.fixture
def path(tmp_path, data):
    name = tmp_path / "weights.bin"
    name.write_bytes(data.tobytes())
    return name


@pytest.fixture
def source(path):
    opened = Source.open(path)
    yield opened
    opened.close()


class Target:
    """Memory to read into, with bytes around it that must stay as they are."""

    def __init__(self, nbytes: int):
        self.array = np.full(nbytes + 128, 0xA5, np.uint8)
        self.address = self.array.ctypes.data + 64

    def bytes(self) -> bytes:
        assert (self.array[:64] == 0xA5).all() and (self.array[-64:] == 0xA5).all()
        return self.array[64:-64].tobytes()


@pytest.mark.parametrize("name, options", WAYS)
def test_same_bytes(name, options, source, data):
    """Ranges around the borders of pages, pieces and the file, whole and in pieces."""
    big = 4 << 20
    ranges = [(0, 0), (0, 1), (0, PAGE), (1, PAGE), (PAGE - 1, 2), (3, PAGE + 1), (5, big),
              (PAGE, big + 1), (7 * PAGE + 13, 2 * big - 1), (len(data) - 1, 1), (0, len(data)),
              (len(data), 0), (len(data) - PAGE - 7, PAGE + 7)]
    with Reader([source], name, **options) as reader:
        targets = [Target(nbytes) for _, nbytes in ranges]
        transfers = [Transfer(0, offset, nbytes, target.address, name="w")
                     for (offset, nbytes), target in zip(ranges, targets)]
        reader.run(transfers)
        for (offset, nbytes), target in zip(ranges, targets):
            assert target.bytes() == data[offset:offset + nbytes].tobytes()
            assert reader.read_bytes(0, offset, nbytes) == target.bytes()
        total = sum(nbytes for _, nbytes in ranges)
        assert reader.statistics()["bytes"] == 2 * total
        assert reader.statistics()["strategy"] == reader.strategy == name


LAYOUTS = [((40, 30, 3, 3), (0, 2, 3, 1)), ((700, 600), (0, 1)), ((701, 601), (0, 1)),
           ((601, 701), (1, 0)), ((67, 1, 3, 3), (2, 3, 1, 0)), ((5,), (0,)),
           ((3, 200_000), (0, 1)), ((2, 3, 90_001), (0, 2, 1))]


@pytest.mark.parametrize("itemsize", [1, 2, 4])
@pytest.mark.parametrize("name, options", WAYS)
def test_same_packed_bytes(name, options, itemsize, source, data):
    """Rows larger and smaller than the scratch memory, from places that are aligned to nothing."""
    with Reader([source], name, **options) as reader:
        transfers, expected, targets = [], [], []
        offset = 3
        for sizes, order in LAYOUTS:
            record = weight(sizes, order, itemsize)
            nbytes = record.constant.nbytes
            assert offset + nbytes < len(data)
            packing = Packing.of(record)
            target = Target(packing.target_bytes)
            transfers.append(Transfer(0, offset, nbytes, target.address, packing, name="w"))
            targets.append(target)
            expected.append(pack_bytes(record.params, itemsize, data[offset:offset + nbytes],
                                       record.rows))
            offset += 5
        reader.run(transfers)
        for target, wanted in zip(targets, expected):
            assert target.bytes() == wanted
            target.array[64:-64] = 1
        for transfer, target, wanted in zip(transfers, targets, expected):
            reader.read_transfer(transfer)
            assert target.bytes() == wanted


@pytest.mark.parametrize("itemsize", [2, 4])
def test_rows_apart(itemsize, source, data):
    """Slices of a weight in any order; the texels of other rows are not touched."""
    record = weight((50, 6, 3, 3), (0, 2, 3, 1), itemsize)
    packing = Packing.of(record)
    expected = pack_bytes(record.params, itemsize, data[11:11 + record.constant.nbytes],
                          record.rows)
    target = Target(packing.target_bytes)
    row = packing.target_bytes // 50
    with Reader([source]) as reader:
        for first, rows in ((49, 1), (10, 20), (0, 10)):
            reader.run([Transfer(0, 11 + first * packing.row_bytes, rows * packing.row_bytes,
                                 target.address, packing, first, rows)])
        got = target.bytes()
        for first in range(50):
            same = got[first * row:][:row] == expected[first * row:][:row]
            assert same == (first < 30 or first == 49)
        reader.run([Transfer(0, 11 + 30 * packing.row_bytes, 19 * packing.row_bytes,
                             target.address, packing, 30, 19)])
        assert target.bytes() == expected
