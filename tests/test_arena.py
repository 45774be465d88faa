"""The arena of a method with dynamic shapes, on an allocator that only counts. No driver."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from vkrt.executable.memory import Block
from vkrt.runtime.arena import Arena


@dataclass
class Held:
    allocator: Counting
    size: int

    def close(self):
        self.allocator.held.remove(self)


@dataclass
class Counting:
    """Allocates nothing; refuses more than `limit` bytes at once."""

    limit: int = 1 << 30
    held: list[Held] = field(default_factory=list)
    peak: int = 0

    @property
    def nbytes(self) -> int:
        return sum(block.size for block in self.held)

    def allocate(self, size, alignment, type_bits, kind):
        if self.nbytes + size > self.limit:
            raise MemoryError
        self.held.append(Held(self, size))
        self.peak = max(self.peak, self.nbytes)
        return self.held[-1]


def plan(activation: int, host: int = 0, spill: int = 0, type_bits: int = 7) -> tuple[Block, ...]:
    sizes = {"activation": activation, "host": host, "spill": spill}
    return tuple(Block(kind, nbytes, 64, type_bits, ()) for kind, nbytes in sizes.items() if nbytes)


@pytest.fixture
def arena():
    return Arena(Counting(), Counting())


def test_it_grows_and_never_shrinks(arena):
    for activation, expected in ((64, 64), (640, 640), (128, 640), (641, 641)):
        if not arena.holds(plan(activation)):
            arena.reserve(plan(activation))
        assert arena.nbytes == expected
    # What there was went before the larger came.
    assert arena._allocator.peak == 641


def test_blocks_of_a_plan(arena):
    some = plan(64, host=32, spill=16)
    arena.reserve(some)
    assert [block.size for block in arena.blocks(some)] == [64, 32, 16]
    assert arena.nbytes == 96 and arena._spilled.nbytes == 16


def test_kinds_grow_apart_as_far_as_there_is_room(arena):
    arena.reserve(plan(100, host=10))
    assert not arena.holds(plan(50, host=20))
    arena.reserve(plan(50, host=20), max_bytes=120)
    assert arena.nbytes == 120
    arena.reserve(plan(50, host=60), max_bytes=120)
    assert arena.nbytes == 110 and not arena.holds(plan(100, host=10))


def test_other_types_of_memory_are_another_arena(arena):
    arena.reserve(plan(64))
    assert not arena.holds(plan(64, type_bits=1))
    arena.reserve(plan(32, type_bits=1))
    assert arena.nbytes == 32 and not arena.holds(plan(64))


def test_a_failure_leaves_nothing_and_asks_for_no_more_than_needed(arena):
    arena.reserve(plan(64, host=8))
    arena._allocator.limit = 100
    with pytest.raises(MemoryError):
        arena.reserve(plan(96, host=8))
    assert arena.nbytes == arena._allocator.nbytes == 0
    arena.reserve(plan(64, host=8))
    assert arena.nbytes == 72
    arena.release()
    arena.release()
    assert arena._allocator.held == []
