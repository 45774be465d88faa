"""Device memory by the core alone: threads that no interpreter puts one after another."""

from __future__ import annotations

import ctypes
import random
from ctypes import byref
from functools import partial
from itertools import count
from threading import Barrier

import pytest
from core_alone import Block, Error, Statistics, alive, core, expect_ok, open_device, room
from core_build import needs_build
from support import in_threads

pytestmark = needs_build

# Of vkrt.h, and a `Purpose`
CLOSED, DEVICE_MEMORY = 2, 11
ANY_TYPE = 0xFFFFFFFF
READBACK = 2
THREADS = 6


@pytest.fixture
def device():
    """A device of the core alone; nothing is left of it."""
    before = alive()
    opened = open_device()
    yield opened
    core().vkrt_close_device(opened)
    assert alive() == before


@pytest.fixture
def allocator(device):
    error, opened = Error(), room()
    expect_ok(core().vkrt_open_allocator(device, opened, byref(error)), error)
    yield opened
    core().vkrt_close_allocator(opened)
    core().vkrt_close_allocator(opened)


def allocate(allocator, size: int, block: Block, error: Error) -> int:
    return core().vkrt_allocate_block(
        allocator, ctypes.c_uint64(size), ctypes.c_uint64(16), ctypes.c_uint32(ANY_TYPE), READBACK,
        byref(block), byref(error))


def at_once(work) -> None:
    """Runs it in threads that begin at once; it is given the thread's number."""
    barrier = Barrier(THREADS)

    def run(number: int) -> None:
        barrier.wait()
        work(number)

    in_threads(*(partial(run, number) for number in range(THREADS)))


def test_numbers_for_messages():
    text = ctypes.create_string_buffer(27)
    chance = random.Random("grouped")
    numbers = [0, 9, 10, 999, 1000, 999_999, 1_000_000, (1 << 64) - 1]
    for number in numbers + [chance.getrandbits(chance.randint(1, 64)) for _ in range(500)]:
        core().vkrt_grouped(ctypes.c_uint64(number), text)
        assert text.value.decode() == f"{number:,}"


def test_threads_share_an_account(allocator):
    """What they allocate at once is counted, to the byte, and so is the most that it was."""
    sizes = [1000 + 17 * number for number in range(THREADS)]
    together = Barrier(THREADS)

    def work(number: int) -> None:
        error, block = Error(), Block()
        for turn in range(200):
            expect_ok(allocate(allocator, sizes[number], block, error), error)
            ctypes.memset(block.mapped, number, block.size)
            if turn == 100:
                together.wait(60)  # for one that has failed
            core().vkrt_free_block(byref(block))
            core().vkrt_free_block(byref(block))
    at_once(work)
    statistics = Statistics()
    core().vkrt_read_statistics(allocator, byref(statistics))
    assert statistics.block_bytes == statistics.block_count == 0
    assert statistics.peak_block_bytes == statistics.peak_allocation_bytes == sum(sizes)


def test_an_account_ends_while_threads_allocate(allocator):
    """Each allocation succeeds, or says that the account is closed; the last block ends it."""
    def work(number: int) -> None:
        error, blocks = Error(), []
        for turn in count():
            block = Block()
            status = allocate(allocator, 100, block, error)
            if status == CLOSED:
                assert error.text == b"the allocator is closed"
                break
            expect_ok(status, error)
            blocks.append(block)
            if number == 0 and turn == 20:
                core().vkrt_close_allocator(allocator)
        for block in blocks:
            core().vkrt_free_block(byref(block))
    at_once(work)


def test_what_memory_ran_out_of(allocator):
    error, small, large = Error(), Block(), Block()
    expect_ok(allocate(allocator, 300, small, error), error)
    assert allocate(allocator, 1 << 46, large, error) == error.status == DEVICE_MEMORY
    assert error.shortage.asked == 1 << 46 and error.shortage.in_use == 300
    assert error.shortage.budget > 0 and error.call == b"vkAllocateMemory"
    assert not large.handle
    core().vkrt_free_block(byref(large))
    core().vkrt_free_block(byref(small))
    core().vkrt_fail_allocation_after(1)
    assert allocate(allocator, 300, small, error) == DEVICE_MEMORY
    # Another error tells nothing of it.
    assert allocate(allocator, 0, small, error) != DEVICE_MEMORY
    assert error.shortage.asked == 0
