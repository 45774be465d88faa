"""The system's cache and this process's memory while files are read."""

from __future__ import annotations

import mmap

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


# What the system does with what it is asked for is its affair: it may read less, or take pages away
# again at any time. So what was asked is counted, and only what must not be there is looked for.


@pytest.mark.parametrize("name", STRATEGIES)
def test_start_ahead(name, big):
    """A window and no more, whatever is asked; nothing for plain faulting."""
    make_cold(big)
    with Reader([big], name, window=4 * MiB) as reader:
        reader.start_ahead(0, 8 * MiB, SIZE)
        reader.start_ahead(0, SIZE, 1)
        expected = (name != "none") * 4 * MiB
        assert reader.statistics()["asked"] == expected
        assert not any(big.resident(0, 8 * MiB)) and not any(big.resident(12 * MiB, SIZE))
        assert expected or not any(big.resident(0, SIZE))


def test_start_ahead_asks_once(big):
    """Going forward, half a window has to be missing; going back, everything is asked anew."""
    with Reader([big], "pread", window=4 * MiB) as reader:
        asked = 0
        for offset, more in ((8, 4), (8, 0), (9, 0), (10, 2), (11, 0), (16, 4), (8, 4)):
            reader.start_ahead(0, offset * MiB, SIZE)
            asked += more * MiB
            assert reader.statistics()["asked"] == asked


@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize("name", ["willneed", "readahead"])
def test_window_ahead_of_the_cursor(name, single, big):
    """Stopped after two pieces, the reader has asked for a window ahead, and not for more."""
    make_cold(big)
    target = Target(SIZE)
    with Reader([big], name, window=8 * MiB) as reader:
        fail_read_after(3)
        transfer = Transfer(0, 0, SIZE, target.address)
        with pytest.raises(OSError):
            reader.read_transfer(transfer) if single else reader.run([transfer])
        read = reader.statistics()["bytes"]
        assert 0 < read <= 8 * MiB
        assert 8 * MiB <= reader.statistics()["asked"] <= read + 8 * MiB + 4 * MiB
    assert not any(big.resident(12 * MiB + SYSTEM_AHEAD, SIZE))


@pytest.mark.parametrize("name", STRATEGIES)
def test_what_is_kept_in_the_cache(name, big, monkeypatch):
    """Asked for by option, or by the size of the file."""
    target = Target(SIZE)
    # Pieces that begin and end inside of pages.
    transfers = [Transfer(0, 0, 33, target.address),
                 Transfer(0, 33, SIZE - 33, target.address + 33)]

    def forgotten(**options):
        with Reader([big], name, **options) as reader:
            reader.run(transfers)
            return reader.statistics()["forgotten"]

    assert forgotten() == forgotten(keep_cached=True) == 0
    assert forgotten(keep_cached=False) >= SIZE
    monkeypatch.setattr(reader_module, "cache_limit", lambda: SIZE)
    assert forgotten() == 0
    monkeypatch.setattr(reader_module, "cache_limit", lambda: SIZE - 1)
    assert forgotten() >= SIZE
    assert forgotten(threads=3) >= SIZE


@pytest.mark.parametrize("name", STRATEGIES)
def test_what_is_forgotten_leaves_the_cache(name, big):
    """Once at least: the system may hold on to pages that it is still reading ahead."""
    target = Target(SIZE)
    left = []
    for _ in range(6):
        make_cold(big)
        with Reader([big], name, threads=1, keep_cached=False) as reader:
            reader.run([Transfer(0, 0, SIZE, target.address)])
        left.append(sum(big.resident(0, SIZE)))
        if left[-1] <= SIZE // PAGE // 2:
            return
    raise AssertionError(f"pages left in the cache: {left}")


def test_cache_limit():
    assert 1 << 24 < cache_limit() < 1 << 60
