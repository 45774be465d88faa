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
    """A slice of a constant: whole rows, copied to the staging buffer and dispatched from there."""

    prepack: int  # index in the command list's prepacks
    # Rows of the constant (see `Prepack.rows`)
    first_row: int
    rows: int
    file_offset: int  # where the slice starts in the constant's file, in bytes
    nbytes: int  # length of the slice
    staging_offset: int  # where it goes in the staging buffer, in bytes


@dataclass(frozen=True)
class Batch:
    """Slices that are in the staging buffer at once, packed by one submission, in the order of the
    file; `new_blocks` are the indices of the memory blocks to allocate before it."""

    items: tuple[Item, ...]
    new_blocks: tuple[int, ...] = ()


@dataclass(frozen=True)
class MemoryPlan(MemoryFigures):
    """All device memory of a method."""

    placements: Placements = Placements((), ())  # of the weights
    # The weights' first, in the order of prepack, then pool, states and activations
    blocks: tuple[Block, ...] = ()
    batches: tuple[Batch, ...] = ()  # the prepack schedule of the staged weights
    stream: StreamPlan | None = None  # the plan of streamed weights, None where there are none
    # (first step, end) of what is submitted at once; a host call ends its own
    submissions: tuple[tuple[int, int], ...] = ()
    granularity: int = 1  # a page of so many bytes in a block holds only buffers, or only images

    @cached_property
    def places(self) -> dict[int, tuple[int, Place]]:
        """(index of the block, place) by the id of the storage; untouched storages have none."""
        return {place.storage: (index, place) for index, block in enumerate(self.blocks)
                for place in block.places}
