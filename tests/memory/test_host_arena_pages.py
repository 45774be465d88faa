"""Pages of host memory: what the system is asked and when they go; no driver needed."""

from __future__ import annotations

import os
import re

import pytest
from arena_samples import HUGE, ODD, PAGE, fill, linux

from vkrt.memory.host_arena import HostArena
from vkrt.memory.smaps import huge_pages

pytestmark = pytest.mark.usefixtures("released_memory")


def flags_at(address: int) -> list[str]:
    """The kernel's flags of the mapping that has the address, and that mapping's range."""
    with open("/proc/self/smaps", encoding="utf-8", errors="replace") as smaps:
        for line in smaps:
            edges = re.match(r"([0-9a-f]+)-([0-9a-f]+) ", line)
            if edges:
                start, end = (int(x, 16) for x in edges.groups())
            elif line.startswith("VmFlags:") and start <= address < end:
                return line.split()[1:]
    raise AssertionError(f"{address:#x} is not mapped")


@linux
@pytest.mark.parametrize("policy", ["off", "aligned", "on"])
@pytest.mark.parametrize("shared", [False, True])
def test_no_page_beyond_those_of_blocks(policy, shared):
    """Whatever the system's setting: a huge page never reaches over what no block uses."""
    arena = HostArena(policy, shared=shared)
    blocks = [arena.allocate(n) for n in ODD * 3]
    for block in blocks:
        fill(block, 5)
    figures = arena.statistics()
    assert figures["resident"] == figures["pages"]
    assert figures["huge_rounding"] == 0
    for block in blocks[1::3]:
        block.close()
    for block in blocks[::3]:
        assert bytes(block) == b"\5" * block.nbytes
    after = arena.statistics()
    assert after["resident"] == after["pages"] < figures["pages"]
    for block in blocks:
        block.close()


@linux
@pytest.mark.parametrize("shared", [False, True])
def test_a_page_goes_with_the_last_block_on_it(shared):
    arena = HostArena("off", shared=shared)
    one, two, three = (arena.allocate(PAGE + PAGE // 2) for _ in range(3))
    for block in (one, two, three):
        fill(block, 9)
    assert arena.statistics()["resident"] == 5 * PAGE
    two.close()  # half of its first page is the neighbour's
    assert arena.statistics()["resident"] == 4 * PAGE
    one.close()  # and now nobody's
    assert arena.statistics()["resident"] == 2 * PAGE
    assert bytes(three) == b"\t" * three.nbytes
    three.close()


@linux
def test_a_place_is_used_again():
    arena = HostArena("off")
    first, middle, last = (arena.allocate(8 * PAGE) for _ in range(3))
    fill(middle, 1)
    where = middle.address
    middle.close()
    assert arena.statistics()["resident"] == 0
    again = arena.allocate(8 * PAGE)
    assert again.address == where
    assert bytes(again) == bytes(8 * PAGE)
    fill(again, 2)
    assert arena.statistics()["resident"] == 8 * PAGE
    for block in (first, again, last):
        block.close()


@linux
def test_shared_memory_is_a_file():
    arena = HostArena(shared=True)
    first, second = arena.allocate(3 * PAGE, PAGE), arena.allocate(2 * PAGE, PAGE)
    fill(first, 1)
    fill(second, 2)
    assert os.pread(second.fd, 2 * PAGE, second.offset) == b"\2" * 2 * PAGE
    os.pwrite(first.fd, b"hello", first.offset + 10)
    assert bytes(first)[10:15] == b"hello"
    before = os.fstat(second.fd).st_blocks
    first.close()
    assert before - os.fstat(second.fd).st_blocks == 3 * PAGE // 512
    assert bytes(second) == b"\2" * 2 * PAGE
    kept = os.dup(second.fd)
    second.close()
    try:
        assert os.fstat(kept).st_blocks == 0
    finally:
        os.close(kept)


@linux
def test_private_memory_has_no_descriptor():
    with HostArena() as arena, arena.allocate(1) as block:
        assert block.fd == -1


@linux
@pytest.mark.parametrize("shared", [False, True])
def test_trim_takes_idle_blocks_only(shared):
    arena = HostArena("off", shared=shared)
    busy, idle, woken = (arena.allocate(16 * PAGE) for _ in range(3))
    for block in (busy, idle, woken):
        fill(block, 6)
    idle.idle()
    woken.idle()
    assert arena.statistics()["idle"] == 32 * PAGE
    woken.wake()
    fill(woken, 7)
    arena.trim()
    assert arena.statistics()["idle"] == 16 * PAGE
    assert arena.statistics()["resident"] == 32 * PAGE
    assert bytes(busy) == b"\6" * 16 * PAGE
    assert bytes(woken) == b"\7" * 16 * PAGE
    idle.wake()
    fill(idle, 8)
    arena.trim()
    assert bytes(idle) == b"\b" * 16 * PAGE
    woken.idle()
    for block in (busy, idle, woken):
        block.close()
    arena.trim()
    assert set(arena.statistics().values()) == {0}


@linux
def test_idle_keeps_the_neighbours_bytes():
    arena = HostArena("off")
    one, two, three = (arena.allocate(3 * PAGE + 64) for _ in range(3))
    for value, block in enumerate((one, two, three)):
        fill(block, value)
    two.idle()
    arena.trim()
    assert bytes(one) == b"\0" * one.nbytes
    assert bytes(three) == b"\2" * three.nbytes
    for block in (one, two, three):
        block.close()


def test_trim_trims_the_heap(monkeypatch):
    from vkrt.memory import host_arena

    calls = []
    monkeypatch.setattr(host_arena, "trim_heap", lambda: calls.append(1))
    HostArena().trim()
    assert calls == [1]


@linux
def test_huge_pages_are_asked_for_where_blocks_fill_them():
    asks = huge_pages()[0] == "madvise"
    half = HUGE // 2 + 64
    for policy in ("off", "on"):
        wanted = asks and policy == "on"
        arena = HostArena(policy)
        first = arena.allocate(half)
        assert "hg" not in flags_at(first.address)
        second = arena.allocate(half)
        assert ("hg" in flags_at(first.address)) == wanted
        tail = second.address + half - 1  # in the next huge page, which is nearly empty
        assert "hg" not in flags_at(tail)
        first.close()
        second.close()


@linux
def test_no_huge_page_is_asked_for_where_a_former_block_left_a_hole():
    asks = huge_pages()[0] == "madvise"
    arena = HostArena("on")
    gone, keeps = arena.allocate(4 * PAGE), arena.allocate(4 * PAGE)
    gone.close()
    block = arena.allocate(2 * HUGE + 64)
    assert block.offset == 8 * PAGE
    flags = [flags_at(block.address - block.offset + i * HUGE + 9 * PAGE) for i in range(3)]
    assert ["hg" in f for f in flags] == [False, asks, False]
    keeps.close()
    block.close()


@linux
def test_memory_of_a_closed_block_is_out_of_reach():
    arena = HostArena()
    keeps, block = arena.allocate(PAGE), arena.allocate(PAGE)
    after = arena.allocate(PAGE)
    where = block.address
    assert "wr" in flags_at(where)
    block.close()
    assert not {"rd", "wr"} & set(flags_at(where))
    keeps.close()
    after.close()


def status(field: str) -> int:
    with open("/proc/self/status", encoding="ascii") as lines:
        return next(int(x.split()[1]) * 1024 for x in lines if x.startswith(field + ":"))


@linux
def test_the_system_refuses_pages():
    """Writable memory is limited after address space was reserved: nothing is taken."""
    resource = pytest.importorskip("resource")
    arena = HostArena()
    keeps = arena.allocate(1000)
    fill(keeps, 1)
    before = arena.statistics()
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (status("VmData") + (8 << 20), hard))
    try:
        for nbytes in (32 << 20, 200 << 20):  # in the region there is, and in one of its own
            with pytest.raises(MemoryError, match=f"{nbytes:,} bytes.*Cannot allocate memory"):
                arena.allocate(nbytes)
            assert arena.statistics() == before
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))
    with arena.allocate(32 << 20) as block:
        memoryview(block)[-1] = 1
    assert bytes(keeps) == b"\1" * 1000
    keeps.close()


@linux
def test_little_address_space():
    """Too little for a usual region, enough for the block."""
    resource = pytest.importorskip("resource")
    arena = HostArena()
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (status("VmSize") + (48 << 20), hard))
    try:
        block = arena.allocate(5 << 20)
        with pytest.raises(MemoryError, match="reserve"):
            arena.allocate(100 << 20)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
    fill(block, 1)
    assert arena.statistics()["mapped"] < 48 << 20
    block.close()
