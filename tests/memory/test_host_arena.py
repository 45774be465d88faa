"""Blocks of host memory: where they lie, how they end, what is counted; no driver needed."""

from __future__ import annotations

import random
import threading

import pytest
from arena_samples import HUGE, ODD, PAGE, fill, linux

from vkrt.memory.host_arena import HostArena, HostBlock, live_host_memory

pytestmark = pytest.mark.usefixtures("released_memory")


@pytest.mark.parametrize("policy", ["off", "on", "auto"])
def test_neighbours_are_packed(policy):
    arena = HostArena(policy)
    blocks = [arena.allocate(n) for n in ODD]
    for one, other in zip(blocks, blocks[1:]):
        assert other.address == one.address + -(-one.nbytes // 64) * 64
    figures = arena.statistics()
    assert figures["regions"] == 1
    assert figures["blocks"] == len(ODD)
    assert figures["used"] == sum(ODD)
    assert figures["gaps"] == 0
    assert figures["pages"] == -(-(blocks[-1].offset + 1) // PAGE) * PAGE
    assert figures["rounding"] == figures["pages"] - sum(ODD)
    for block in blocks:
        block.close()


def test_forced_alignment_leaves_gaps():
    arena = HostArena("aligned")
    sizes = ODD[:-1]
    blocks = [arena.allocate(n) for n in sizes]
    assert [b.address % HUGE for b in blocks] == [0] * len(sizes)
    assert [b.offset for b in blocks] == [i * HUGE for i in range(len(sizes))]
    assert arena.statistics()["gaps"] == sum(HUGE - -(-n // 64) * 64 for n in sizes[:-1])
    for block in blocks:
        block.close()


@pytest.mark.parametrize("nbytes, aligned", [
    (HUGE, True), (3 * HUGE, True), (HUGE + 1, False), (HUGE - 1, False), (3 * HUGE + 5, False),
    (8 * HUGE - 1, False), (8 * HUGE, True), (8 * HUGE + 1, True)])
def test_only_whole_or_large_blocks_begin_with_a_huge_page(nbytes, aligned):
    with HostArena("on") as arena, arena.allocate(1000), arena.allocate(nbytes) as block:
        assert block.offset == (HUGE if aligned else 1024)
    with HostArena("off") as arena, arena.allocate(1000), arena.allocate(nbytes) as block:
        assert block.offset == 1024


def test_small_blocks_fill_the_gap_before_an_aligned_one():
    with HostArena("on") as arena, arena.allocate(1000), arena.allocate(2 * HUGE):
        assert arena.statistics()["gaps"] == HUGE - 1024
        with arena.allocate(HUGE - 1024) as block:
            assert block.offset == 1024
            assert arena.statistics()["gaps"] == 0


@pytest.mark.parametrize("policy", ["off", "aligned", "on"])
@pytest.mark.parametrize("alignment", [1, 64, 256, PAGE, 1 << 16, HUGE, 1 << 30])
def test_alignment(policy, alignment):
    with HostArena(policy) as arena, arena.allocate(100), \
            arena.allocate(3 * PAGE, alignment) as block:
        assert block.address % max(alignment, 64) == 0
        fill(block, 1)


def test_the_smallest_hole_is_taken():
    arena = HostArena("off")
    blocks = [arena.allocate(n) for n in (10 * PAGE, 64, 4 * PAGE, 64, 7 * PAGE, 64)]
    places = [b.offset for b in blocks]
    for i in (0, 2, 4):
        blocks[i].close()
    assert arena.statistics()["gaps"] == 21 * PAGE
    again = [arena.allocate(n) for n in (4 * PAGE, 6 * PAGE, 9 * PAGE)]
    assert [b.offset for b in again] == [places[2], places[4], places[0]]
    assert arena.statistics()["gaps"] == 2 * PAGE
    for block in blocks + again:
        block.close()


def test_the_smallest_hole_of_all_regions_is_taken():
    arena = HostArena("off")
    large = arena.allocate(60 << 20)
    second = arena.allocate(62 << 20)
    small = arena.allocate(1 << 20)  # the second region has 2 MiB left, the first one 4
    assert small.address == second.address + second.nbytes
    for block in (large, second, small):
        block.close()


def test_regions_come_and_go():
    arena = HostArena("on")
    blocks = [arena.allocate(24 << 20) for _ in range(6)]
    figures = arena.statistics()
    assert figures["regions"] > 1
    assert figures["mapped"] >= figures["used"] == 144 << 20
    assert live_host_memory()["regions"] >= figures["regions"]
    ranges = sorted((b.address, b.address + b.nbytes) for b in blocks)
    assert all(end <= start for (_, end), (start, _) in zip(ranges, ranges[1:]))
    for block in blocks:
        block.close()
    assert set(arena.statistics().values()) == {0}


def test_a_block_larger_than_a_region():
    with HostArena() as arena, arena.allocate((100 << 20) + 1) as block:
        data = memoryview(block)
        data[0] = data[-1] = 7
        assert arena.statistics()["mapped"] == -(-((100 << 20) + 1) // HUGE) * HUGE
        data.release()


def test_buffer_protocol():
    arena = HostArena()
    block = arena.allocate(1001)
    view = memoryview(block)
    assert (view.nbytes, view.readonly, view.format) == (1001, False, "B")
    view[:] = bytes(i % 251 for i in range(1001))
    assert bytes(block) == bytes(i % 251 for i in range(1001))
    block.close()
    assert view[1000] == 1000 % 251  # goes with the last view
    assert arena.statistics()["blocks"] == 1
    with pytest.raises(ValueError, match="1,001 bytes is closed"):
        memoryview(block)
    view.release()
    assert arena.statistics()["blocks"] == 0


def test_close_is_idempotent():
    arena = HostArena()
    keeps = arena.allocate(PAGE)
    block = arena.allocate(PAGE)
    block.close()
    block.close()
    assert arena.statistics()["blocks"] == 1
    for use in (lambda: block.address, lambda: block.fd, block.idle, block.wake):
        with pytest.raises(ValueError, match="closed"):
            use()
    keeps.close()


def test_an_arena_is_closed_before_its_blocks():
    arena = HostArena()
    block, other = arena.allocate(PAGE), arena.allocate(ODD[0])
    arena.close()
    with pytest.raises(ValueError, match="arena is closed"):
        arena.allocate(1)
    fill(block, 3)
    fill(other, 4)
    other.close()
    assert bytes(block) == b"\3" * PAGE
    block.close()


def test_blocks_that_nobody_closes():
    arena = HostArena()
    arena.allocate(100)
    block = arena.allocate(100)
    del arena
    fill(block, 1)
    assert live_host_memory()["blocks"] == 1


@pytest.mark.parametrize("arguments, error, message", [
    ((0,), ValueError, "at least one byte"),
    ((-1,), OverflowError, "negative"),
    ((10, 0), ValueError, "alignment 0: expected a power of two"),
    ((10, 48), ValueError, "alignment 48"),
    ((10, 2 << 30), ValueError, "alignment 2147483648"),
    ((1 << 60,), MemoryError, "1,152,921,504,606,846,976 bytes"),
    (((1 << 64) - 1,), MemoryError, "18,446,744,073,709,551,615 bytes"),
])
def test_arguments_out_of_range(arguments, error, message):
    arena = HostArena()
    with pytest.raises(error, match=message):
        arena.allocate(*arguments)
    assert set(arena.statistics().values()) == {0}


def test_unknown_policy():
    with pytest.raises(ValueError, match="policy 'fast': expected one of auto, off, aligned, on"):
        HostArena("fast")


def test_blocks_are_made_by_arenas():
    with pytest.raises(TypeError, match="allocate"):
        HostBlock()


@pytest.mark.parametrize("policy", ["off", "aligned", "on"])
@pytest.mark.parametrize("shared", [False, pytest.param(True, marks=linux)])
def test_any_order(policy, shared):
    """Blocks never overlap, keep their bytes, and every byte is accounted for throughout."""
    pick = random.Random(20)
    arena = HostArena(policy, shared=shared)
    alive: list[tuple[HostBlock, int]] = []
    for step in range(400):
        if alive and pick.random() < 0.45:
            block, value = alive.pop(pick.randrange(len(alive)))
            assert bytes(block) == bytes([value]) * block.nbytes
            block.close()
        else:
            nbytes = pick.choice((1, 63, PAGE, 4 * PAGE + 1, HUGE, pick.randrange(1, HUGE)))
            block = arena.allocate(nbytes, pick.choice((1, 64, 256, PAGE)))
            fill(block, step % 255 + 1)
            alive.append((block, step % 255 + 1))
        ranges = sorted((b.address, b.address + b.nbytes) for b, _ in alive)
        assert all(end <= start for (_, end), (start, _) in zip(ranges, ranges[1:]))
        if step % 40 == 0:
            figures = arena.statistics()
            assert figures["used"] == sum(b.nbytes for b, _ in alive)
            assert figures["blocks"] == len(alive)
            touched = {p for start, end in ranges for p in range(start // PAGE, -(-end // PAGE))}
            assert figures["pages"] == len(touched) * PAGE
            assert figures["huge_rounding"] == 0
    for block, value in alive:
        assert bytes(block) == bytes([value]) * block.nbytes
        block.close()
    assert set(arena.statistics().values()) == {0}


def test_threads():
    arena = HostArena("on")
    wrong = []

    def work(value: int) -> None:
        pick = random.Random(value)
        for _ in range(60):
            blocks = [arena.allocate(pick.randrange(1, 40 * PAGE)) for _ in range(4)]
            for block in blocks:
                fill(block, value)
            wrong.extend(b for b in blocks if bytes(b) != bytes([value]) * b.nbytes)
            for block in blocks:
                block.close()

    threads = [threading.Thread(target=work, args=(i + 1,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert set(arena.statistics().values()) == {0}
