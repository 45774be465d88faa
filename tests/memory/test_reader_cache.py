"""The system's cache and this process's memory while files are read."""

from __future__ import annotations

import mmap
import time

import numpy as np
import pytest
from memory_samples import STRATEGIES, Target, make_cold

from vkrt.memory import reader as reader_module
from vkrt.memory.reader import Reader, Transfer, cache_limit, fail_read_after
from vkrt.memory.source import Source

PAGE = mmap.PAGESIZE
MiB = 1 << 20
SIZE = 64 * MiB
# What the system may read ahead of a read on its own account; it is a setting of each disk.
SYSTEM_AHEAD = 16 * MiB


@pytest.fixture(scope="module")
def big(tmp_path_factory):
    path = tmp_path_factory.mktemp("big") / "big.bin"
    path.write_bytes(np.random.default_rng(1).integers(0, 256, SIZE, np.uint8).tobytes())
    source = Source.open(path)
    yield source
    source.close()
    path.unlink()


def status(figure: str) -> int:
    with open("/proc/self/status", encoding="ascii") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith(figure + ":"))


def peak_growth(work) -> int:
    """Bytes that the process's memory grows by while `work` runs, at its highest."""
    with open("/proc/self/clear_refs", "w", encoding="ascii") as file:
        file.write("5")  # VmHWM starts anew
    before = status("VmRSS")
    work()
    return status("VmHWM") - before


def mapped(source: Source) -> int:
    """Bytes of a source's mapping that the process has in its memory."""
    total, inside = 0, False
    with open("/proc/self/smaps", encoding="utf-8") as smaps:
        for line in smaps:
            if "-" in line.split(" ", 1)[0]:
                inside = line.rstrip().endswith(source.name)
            elif inside and line.startswith("Rss:"):
                total += int(line.split()[1]) * 1024
    return total


def wait_for(source: Source, start: int, end: int) -> None:
    """Until the pages of a range that the system was asked for are there; it may leave out some.
    """
    deadline = time.monotonic() + 30
    while sum(source.resident(start, end - start)) < 0.9 * (end - start) / PAGE:
        assert time.monotonic() < deadline, "the range never came"
        time.sleep(0.01)


@pytest.mark.parametrize("state", ["cold", "warm"])
@pytest.mark.parametrize("name, threads", [*((n, 1) for n in STRATEGIES), ("auto", 4),
                                           ("none", 3)])
def test_pages_of_the_mapping_are_given_back(name, threads, state, big):
    """The process never holds more of the file than a piece for each thread."""
    if state == "cold":
        make_cold(big)
    target = Target(SIZE)
    with Reader([big], name, threads=threads) as reader:
        transfers = [Transfer(0, i * 7 * MiB, 7 * MiB, target.address + i * 7 * MiB)
                     for i in range(9)]
        grown = peak_growth(lambda: reader.run(transfers))
        # Faults may map a huge page at each end of a piece; a thread's stack may be one.
        assert grown <= threads * (1 + 4 + 2) * MiB + 8 * MiB
        assert mapped(big) == 0
        grown = peak_growth(lambda: reader.read_transfer(Transfer(0, 0, SIZE, target.address)))
        assert grown <= (1 + 4) * MiB + 8 * MiB
        assert mapped(big) == 0


def test_the_check_sees_pages_of_a_mapping(big):
    view = np.frombuffer(big, np.uint8)
    assert peak_growth(lambda: view[::PAGE].sum()) >= SIZE - 8 * MiB
    before = status("VmRSS")
    big.release(0, SIZE)
    assert status("VmRSS") <= before - SIZE + 8 * MiB
    assert mapped(big) == 0
    assert view[PAGE] == view[PAGE] and mapped(big) >= PAGE
    big.release(0, SIZE)


@pytest.mark.parametrize("name", STRATEGIES)
def test_start_ahead(name, big):
    """A window and no more, whatever is asked; nothing for plain faulting."""
    make_cold(big)
    with Reader([big], name, window=4 * MiB) as reader:
        reader.start_ahead(0, 8 * MiB, SIZE)
        reader.start_ahead(0, SIZE, 1)
        expected = name != "none"
        wait_for(big, 8 * MiB, (8 + 4 * expected) * MiB)
        assert sum(big.resident(0, SIZE)) <= expected * 4 * MiB // PAGE


def test_start_ahead_asks_once(big):
    """Going forward, half a window has to be missing; going back, everything is asked anew."""
    with Reader([big], "pread", window=4 * MiB) as reader:
        for offset, start, end in ((8, 8, 12), (8, 0, 0), (9, 0, 0), (10, 12, 14), (11, 0, 0),
                                   (16, 16, 20), (8, 8, 12)):
            make_cold(big)
            reader.start_ahead(0, offset * MiB, SIZE)
            wait_for(big, start * MiB, end * MiB)
            time.sleep(0.05)  # for what should not come
            assert sum(big.resident(0, SIZE)) <= (end - start) * MiB // PAGE


@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize("name", ["willneed", "readahead"])
def test_window_ahead_of_the_cursor(name, single, big):
    """Stopped after two pieces, the reader has asked for a window, and not for more."""
    make_cold(big)
    target = Target(SIZE)
    with Reader([big], name, window=8 * MiB) as reader:
        fail_read_after(3)
        transfer = Transfer(0, 0, SIZE, target.address)
        with pytest.raises(OSError):
            reader.read_transfer(transfer) if single else reader.run([transfer])
    wait_for(big, 0, 8 * MiB)
    assert not any(big.resident(10 * MiB + SYSTEM_AHEAD, SIZE))


@pytest.mark.parametrize("name", STRATEGIES)
def test_what_stays_cached(name, big, monkeypatch):
    make_cold(big)
    target = Target(SIZE)
    pages = SIZE // PAGE
    # Pieces that begin and end inside of pages.
    transfers = [Transfer(0, 0, 33, target.address),
                 Transfer(0, 33, SIZE - 33, target.address + 33)]

    def read(**options):
        with Reader([big], name, **options) as reader:
            reader.run(transfers)
        return sum(big.resident(0, SIZE))

    def stays(**options):
        # The system may take pages at any time, or hold on to some; but not every time.
        return any(read(**options) == pages for _ in range(6))

    def goes(**options):
        # What the system itself reads ahead of a thread may still be under way when it is dropped.
        return any(read(threads=1, **options) <= SYSTEM_AHEAD // PAGE for _ in range(6))

    assert stays()
    assert stays(keep_cached=True)
    assert goes(keep_cached=False)
    monkeypatch.setattr(reader_module, "cache_limit", lambda: SIZE)
    assert stays()
    monkeypatch.setattr(reader_module, "cache_limit", lambda: SIZE - 1)
    assert goes()
    assert any(read(threads=3) < pages for _ in range(6))


def test_direct_reads_leave_the_cache_alone(big):
    make_cold(big)
    target = Target(SIZE)
    with Reader([big], "pread", direct=True) as reader:
        reader.start_ahead(0, 0, SIZE)
        reader.run([Transfer(0, 5, SIZE - 9, target.address)])
        if reader.notes:
            pytest.skip(reader.notes[0])
    assert not any(big.resident(0, SIZE))
    assert target.bytes()[:SIZE - 9] == memoryview(big)[5:SIZE - 4]


def test_cache_limit():
    assert 1 << 24 < cache_limit() < 1 << 60
