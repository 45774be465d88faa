"""The records of a memory plan: `vkrt.plan.plan` makes it, and an executable is made from it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from vkrt.executable.memory import Block, MemoryFigures, Place
from vkrt.plan.placement import Placements
from vkrt.plan.stream.records import StreamPlan

# Bytes that a slice's offset in the staging buffer is a multiple of: the largest that Vulkan lets a
# driver ask for. The buffer's size is a multiple too, so that drivers do not enlarge it.
STAGING_ALIGNMENT = 256


@dataclass(frozen=True)
class Item:
    """A slice of a constant: whole rows, copied to the staging buffer and dispatched from there.

    Attributes:
        prepack: index in the command list's prepacks.
        first_row, rows: rows of the constant (see `Prepack.rows`).
        file_offset: where the slice starts in the constant's file, in bytes.
        nbytes: length of the slice.
        staging_offset: where it goes in the staging buffer, in bytes.
    """

    prepack: int
    first_row: int
    rows: int
    file_offset: int
    nbytes: int
    staging_offset: int


@dataclass(frozen=True)
class Batch:
    """Slices that are in the staging buffer at once, packed by one submission, in the order of the
    file; `new_blocks` are the indices of the memory blocks to allocate before it."""

    items: tuple[Item, ...]
    new_blocks: tuple[int, ...] = ()


@dataclass(frozen=True)
class MemoryPlan(MemoryFigures):
    """All device memory of a method.

    Attributes:
        placements: of the weights.
        blocks: the weights' first, in the order of prepack, then pool, states and activations.
        batches: the prepack schedule of the staged weights.
        stream: the plan of streamed weights, None where there are none.
        submissions: (first step, end) of what is submitted at once; a host call ends its own.
        granularity: a page of so many bytes in a block holds only buffers, or only images.
    """

    placements: Placements = Placements((), ())
    blocks: tuple[Block, ...] = ()
    batches: tuple[Batch, ...] = ()
    stream: StreamPlan | None = None
    submissions: tuple[tuple[int, int], ...] = ()
    granularity: int = 1

    @cached_property
    def places(self) -> dict[int, tuple[int, Place]]:
        """(index of the block, place) by the id of the storage; untouched storages have none."""
        return {place.storage: (index, place) for index, block in enumerate(self.blocks)
                for place in block.places}
