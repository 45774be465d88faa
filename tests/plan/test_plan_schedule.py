"""The prepack schedule: every byte of every constant once, never more than the staging buffer."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from plan_samples import Maker
from properties import examples

from vkrt.plan.memory_plan import STAGING_ALIGNMENT, Batch
from vkrt.plan.schedule import MIN_CHUNK, chunk_for, schedule

WEIGHTS = st.lists(st.tuples(st.integers(1, 700), st.integers(1, 40), st.integers(0, 8)),
                   max_size=12)


def make_prepacks(weights):
    make = Maker()
    for row_bytes, rows, gap in weights:
        make.weight(row_bytes, rows, gap=gap)
    return make.prepacks


@examples(100)
@given(WEIGHTS, st.integers(1, 20000))
def test_every_byte_once(weights, wanted):
    prepacks = make_prepacks(weights)
    chunk = chunk_for(prepacks, wanted, arena_bytes=0)
    largest_row = max((p.row_bytes for p in prepacks), default=0)
    assert chunk <= max(wanted, largest_row + STAGING_ALIGNMENT - 1)
    block_of = {p.target.storage.id: i // 3 for i, p in enumerate(prepacks)}
    batches, staging = schedule(prepacks, chunk, block_of)
    assert staging <= chunk and staging % STAGING_ALIGNMENT == 0

    items = [item for batch in batches for item in batch.items]
    position = {}
    for item in items:
        record = prepacks[item.prepack]
        assert item.first_row == position.get(item.prepack, 0)
        assert item.rows > 0
        assert item.file_offset == record.constant.offset + item.first_row * record.row_bytes
        assert item.nbytes == item.rows * record.row_bytes
        position[item.prepack] = item.first_row + item.rows
    assert position == {i: p.rows for i, p in enumerate(prepacks)}
    # The file is read from its start to its end.
    assert items == sorted(items, key=lambda item: item.file_offset)

    seen = []
    for batch in batches:
        assert batch.items
        end = 0
        for item in batch.items:
            assert item.staging_offset >= end and item.staging_offset % STAGING_ALIGNMENT == 0
            end = item.staging_offset + item.nbytes
        assert end <= staging
        seen += batch.new_blocks
        used = {block_of[prepacks[item.prepack].target.storage.id] for item in batch.items}
        assert used <= set(seen)
    assert seen == sorted(set(block_of.values()))


@examples(100)
@given(WEIGHTS, st.integers(1, 20000))
def test_what_fits_is_not_cut(weights, wanted):
    prepacks = make_prepacks(weights)
    chunk = chunk_for(prepacks, wanted, arena_bytes=0)
    batches, _ = schedule(prepacks, chunk, {})
    counts = [item.prepack for batch in batches for item in batch.items]
    for index, record in enumerate(prepacks):
        whole = -(-record.constant.nbytes // STAGING_ALIGNMENT) * STAGING_ALIGNMENT
        if whole <= chunk:
            assert counts.count(index) == 1
    assert not any(batch.new_blocks for batch in batches)


def slices(batches):
    return [[(i.prepack, i.first_row, i.rows, i.file_offset, i.nbytes, i.staging_offset)
             for i in batch.items] for batch in batches]


def test_known_schedule():
    prepacks = make_prepacks([(100, 2, 0), (300, 5, 8), (64, 1, 0)])
    batches, staging = schedule(prepacks, 1024, {})
    # 256 are taken by the first, so 2 rows of the second fit behind it; then 3 and the third.
    assert slices(batches) == [[(0, 0, 2, 0, 200, 0), (1, 0, 2, 208, 600, 256)],
                               [(1, 2, 3, 808, 900, 0)],
                               [(2, 0, 1, 1708, 64, 0)]]
    assert staging == 1024


def test_staging_is_no_larger_than_needed():
    prepacks = make_prepacks([(100, 2, 0), (300, 1, 0)])
    batches, staging = schedule(prepacks, 8 << 20, {})
    assert slices(batches) == [[(0, 0, 2, 0, 200, 0), (1, 0, 1, 200, 300, 256)]]
    assert staging == 768


def test_a_row_larger_than_the_chunk():
    prepacks = make_prepacks([(5000, 3, 0)])
    chunk = chunk_for(prepacks, 1024, arena_bytes=0)
    assert chunk == 5120
    batches, staging = schedule(prepacks, chunk, {})
    assert [len(b.items) for b in batches] == [1, 1, 1] and staging == 5120


def test_rows_that_do_not_divide_the_constant():
    prepacks = make_prepacks([(4, 1, 0)])
    odd = replace(prepacks[0], row_bytes=2, rows=4)
    batches, _ = schedule([odd], 256, {})
    assert slices(batches) == [[(0, 0, 4, 0, 4, 0)]]
    short = replace(prepacks[0], row_bytes=1, rows=2)
    with pytest.raises(ValueError, match="less than the 4"):
        schedule([short], 256, {})


def test_an_empty_constant_has_memory_and_no_slice():
    prepacks = make_prepacks([(0, 1, 0)])
    storage = prepacks[0].target.storage.id
    assert schedule(prepacks, 256, {storage: 7}) == ((Batch((), (7,)),), 0)


def test_chunk():
    prepacks = make_prepacks([(16, 4, 0)])
    assert chunk_for(prepacks, 8 << 20, 0) == MIN_CHUNK
    assert chunk_for(prepacks, 8 << 20, (1 << 20) + 5) == 1 << 20
    assert chunk_for(prepacks, 8 << 20, 1 << 30) == 8 << 20
    assert chunk_for(prepacks, 1000, 1 << 30) == 768
    assert chunk_for([], 100, 0) == 0
