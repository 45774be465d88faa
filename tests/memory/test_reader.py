"""Reader: the same bytes by every strategy, packed or not, and what it tells of itself."""

from __future__ import annotations

import mmap
import re
import sys
import threading
from pathlib import Path

import pytest
from host_packing import pack_bytes, packing_of
from memory_samples import STRATEGIES, WAYS, Target, read_bytes, weight

from vkrt.memory.reader import Reader, Transfer
from vkrt.memory.source import Source

PAGE = mmap.PAGESIZE
MiB = 1 << 20


@pytest.mark.parametrize("name, options", WAYS)
def test_same_bytes(name, options, source, data):
    """Ranges around the borders of pages, pieces and the file."""
    ranges = [(0, 0), (0, 1), (0, PAGE), (1, PAGE), (PAGE - 1, 2), (3, PAGE + 1), (5, MiB),
              (PAGE, MiB + 1), (7 * PAGE + 13, 2 * MiB - 1), (len(data) - 1, 1), (0, len(data)),
              (len(data), 0), (len(data) - PAGE - 7, PAGE + 7)]
    with Reader([source], name, **options) as reader:
        targets = [Target(nbytes) for _, nbytes in ranges]
        reader.run([Transfer(0, offset, nbytes, target.address)
                    for (offset, nbytes), target in zip(ranges, targets)])
        for (offset, nbytes), target in zip(ranges, targets):
            assert target.bytes() == data[offset:offset + nbytes].tobytes()
            assert read_bytes(reader, 0, offset, nbytes) == target.bytes()
        total = sum(nbytes for _, nbytes in ranges)
        statistics = reader.statistics()
        assert statistics["bytes"] == 2 * total
        assert statistics["reads"] == 2 * sum(-(-nbytes // MiB) for _, nbytes in ranges)
        assert statistics["read_seconds"] > 0 == statistics["pack_seconds"]
        assert statistics["strategy"] == reader.strategy == name


@pytest.mark.parametrize("name", STRATEGIES)
def test_wrapped_bytes_and_files_together(name, source, data):
    wrapped = Source.wrap(data.tobytes())
    transfers, targets = [], [Target(3 * MiB + 5) for _ in range(6)]
    with Reader([wrapped, source, wrapped], name) as reader:
        for index, target in enumerate(targets):
            reader.start_ahead(index % 3, index * 1001, 3 * MiB)
            transfers.append(Transfer(index % 3, index * 1001, 3 * MiB + 5, target.address))
        reader.run(transfers)
    for index, target in enumerate(targets):
        assert target.bytes() == data[index * 1001:][:3 * MiB + 5].tobytes()
    wrapped.close()


def test_nothing_to_do(source, tmp_path):
    with Reader([source]) as reader:
        reader.run([])
        reader.run([Transfer(0, 5, 0, 0)])
        assert reader.statistics()["bytes"] == reader.statistics()["scratch_bytes"] == 0
    with Reader([]) as reader:
        reader.run([])
    (tmp_path / "empty").touch()
    empty = Source.open(tmp_path / "empty")
    with Reader([empty]) as reader:
        reader.run([Transfer(0, 0, 0, 0)])
        reader.start_ahead(0, 0, 1)
        assert read_bytes(reader, 0, 0, 0) == b""
    empty.close()


LAYOUTS = [((40, 30, 3, 3), (0, 2, 3, 1)), ((700, 600), (0, 1)), ((701, 601), (0, 1)),
           ((601, 701), (1, 0)), ((67, 1, 3, 3), (2, 3, 1, 0)), ((5,), (0,)),
           ((3, 200_000), (0, 1)), ((2, 3, 90_001), (0, 2, 1)), ((1501, 1101), (1, 0)),
           ((300, 130, 3, 3), (1, 2, 3, 0)), ((1_100_001,), (0,))]


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
            packing = packing_of(record)
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
    packing = packing_of(record)
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


def test_scratch_memory_is_a_piece_per_thread(source):
    """Weights are cut by rows or by columns; only a row that is larger than a piece grows it."""
    target = Target(4 * MiB)
    with Reader([source], "pread", threads=2) as reader:
        for sizes, order in (((700, 601), (0, 1)), ((601, 701), (1, 0)), ((600_001,), (0,)),
                             ((300, 130, 3, 3), (1, 2, 3, 0))):
            record = weight(sizes, order, 4)
            reader.run([Transfer(0, 1, record.constant.nbytes, target.address,
                                 packing_of(record))])
        assert 0 < reader.statistics()["scratch_bytes"] <= 2 * MiB
        record = weight((2, 300_001), (0, 1), 4)
        reader.run([Transfer(0, 1, record.constant.nbytes, target.address, packing_of(record))])
        assert 300_001 * 4 <= reader.statistics()["scratch_bytes"] <= 2 * 300_001 * 4
        assert reader.statistics()["pack_seconds"] > 0
    with Reader([source], "none") as reader:
        reader.run([Transfer(0, 1, record.constant.nbytes, target.address, packing_of(record))])
        assert reader.statistics()["scratch_bytes"] == 0


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_scratch_memory_is_given_back(source):
    """50 runs in 1.2 MB of scratch memory each leave no more address space mapped than one."""
    target = Target(4 * MiB)
    record = weight((2, 300_001), (0, 1), 4)
    transfer = Transfer(0, 1, record.constant.nbytes, target.address, packing_of(record))

    def mapped() -> int:
        status = Path("/proc/self/status").read_text(encoding="ascii")
        return int(re.search(r"^VmData:\s+(\d+) kB", status, re.MULTILINE)[1]) * 1024

    with Reader([source], "pread", threads=1) as reader:
        reader.run([transfer])
        before = mapped()
        for _ in range(50):
            reader.run([transfer])
        assert mapped() < before + 10 * MiB


@pytest.mark.parametrize("name", STRATEGIES)
def test_threads_share_a_reader(name, source, data):
    """Single reads by more threads than there are kept pieces of scratch memory, beside a run."""
    record = weight((50, 60, 3, 3), (0, 2, 3, 1), 4)
    packing, nbytes = packing_of(record), record.constant.nbytes
    failed = []

    def work(number, reader):
        for turn in range(5):
            offset = 7 * number + turn
            target = Target(packing.target_bytes)
            reader.read_transfer(Transfer(0, offset, nbytes, target.address, packing))
            if target.bytes() != pack_bytes(record.params, 4, data[offset:offset + nbytes], 50):
                failed.append(number)

    whole = Target(len(data))
    with Reader([source], name) as reader:
        threads = [threading.Thread(target=work, args=(n, reader)) for n in range(20)]
        for thread in threads:
            thread.start()
        for _ in range(3):
            reader.run([Transfer(0, 0, len(data), whole.address)])
        for thread in threads:
            thread.join()
    assert not failed
    assert whole.bytes() == data.tobytes()
