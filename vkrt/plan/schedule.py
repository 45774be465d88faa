"""The prepack schedule: which rows of which constants pass through the staging buffer together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from vkrt.plan.memory_plan import STAGING_ALIGNMENT, Batch, Item
from vkrt.work.records import Prepack
from vkrt.work.tensor import round_up

# Below this many bytes, or this part of all that passes through it, a smaller staging buffer saves
# nothing worth the submissions it costs.
MIN_CHUNK = 256 << 10
MIN_PART = 64


def chunk_for(prepacks: Sequence[Prepack], chunk: int, arena_bytes: int) -> int:
    """Bytes of the largest staging buffer to use.

    Args:
        prepacks: the work; one row of each has to fit.
        chunk: the most the caller wants.
        arena_bytes: what is allocated once staging is released. With no more staging than that, the
            peak of device memory comes after prepacking.
    """
    total = sum(p.constant.nbytes for p in prepacks)
    chunk = min(chunk, max(arena_bytes, MIN_CHUNK, total // MIN_PART))
    chunk = chunk // STAGING_ALIGNMENT * STAGING_ALIGNMENT
    longest = max((min(p.row_bytes, p.constant.nbytes) for p in prepacks), default=0)
    return max(chunk, round_up(longest, STAGING_ALIGNMENT))


def schedule(prepacks: Sequence[Prepack], chunk: int, block_of: Mapping[int, int],
             wanted: Sequence[int] | None = None) -> tuple[tuple[Batch, ...], int]:
    """Cuts constants into slices and gathers them in batches; also the bytes of staging that the
    largest batch takes. A constant that fits the chunk is never cut; a larger one is cut at rows.

    Args:
        prepacks: in the order of the file.
        chunk: bytes the slices of a batch may take, see `chunk_for`.
        block_of: id of a weight's storage -> index of its memory block, which the first batch that
            needs it allocates. Empty when all blocks are allocated beforehand.
        wanted: indices of the prepacks to schedule, in the order of the file; all by default.
    """
    maker = _Batches(chunk, block_of)
    for index in range(len(prepacks)) if wanted is None else wanted:
        maker.add(index, prepacks[index])
    maker.finish()
    return tuple(maker.batches), maker.staging_bytes


class _Batches:
    def __init__(self, chunk: int, block_of: Mapping[int, int]):
        self.chunk = chunk
        self.block_of = block_of
        self.batches: list[Batch] = []
        self.staging_bytes = 0
        self._items: list[Item] = []
        self._blocks: list[int] = []
        self._allocated: set[int] = set()
        self._used = 0

    def add(self, index: int, record: Prepack) -> None:
        constant = record.constant
        total = constant.nbytes
        if record.rows * record.row_bytes < total:
            raise ValueError(f"prepack {index} ({record.name}): {record.rows} rows of "
                             f"{record.row_bytes} bytes are less than the {total} of the constant")
        if round_up(total, STAGING_ALIGNMENT) <= self.chunk:
            if round_up(total, STAGING_ALIGNMENT) > self.chunk - self._used:
                self.finish()
            self._allocate(record)
            if total:
                self._slice(index, record, 0, record.rows)
            return
        row = 0
        while row < record.rows and row * record.row_bytes < total:
            room = (self.chunk - self._used) // record.row_bytes
            if not room and self._items:
                self.finish()
                continue
            self._allocate(record)
            rows = min(max(room, 1), record.rows - row)
            self._slice(index, record, row, rows)
            row += rows

    def _allocate(self, record: Prepack) -> None:
        block = self.block_of.get(record.target.storage.id)
        if block is not None and block not in self._allocated:
            self._allocated.add(block)
            self._blocks.append(block)

    def _slice(self, index: int, record: Prepack, first: int, rows: int) -> None:
        start = first * record.row_bytes
        nbytes = min(rows * record.row_bytes, record.constant.nbytes - start)
        self._items.append(Item(prepack=index, first_row=first, rows=rows,
                                file_offset=record.constant.offset + start, nbytes=nbytes,
                                staging_offset=self._used))
        self._used += round_up(nbytes, STAGING_ALIGNMENT)
        self.staging_bytes = max(self.staging_bytes, self._used)

    def finish(self) -> None:
        if self._items or self._blocks:
            self.batches.append(Batch(tuple(self._items), tuple(self._blocks)))
        self._items, self._blocks, self._used = [], [], 0
