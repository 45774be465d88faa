"""The records of a memory plan, which `vkrt.plan.plan` makes and which the runtime carries out."""

from __future__ import annotations

from functools import cached_property

from vkrt.dataclass import dataclass
from vkrt.hints import Any
from vkrt.plan.placement import Placements
from vkrt.plan.stream.records import StreamPlan

DEFAULT_CHUNK = 8 << 20
ORDERS = ("lazy", "eager")
BLOCK_KINDS = ("weight", "pool", "state", "activation", "host", "spill")
# Bytes that a slice's offset in the staging buffer is a multiple of: the largest that Vulkan lets a
# driver ask for. The buffer's size is a multiple too, so that drivers do not enlarge it.
STAGING_ALIGNMENT = 256
# Parts of the staging buffer through which weights are streamed to memory of the device's own
SLOTS = 2


@dataclass(frozen=True)
class Place:
    """Where a storage lies in its block.

    Attributes:
        storage: id of the storage.
        offset, nbytes: in bytes, as the device's requirements have it.
    """

    storage: int
    offset: int
    nbytes: int

    @property
    def end(self) -> int:
        return self.offset + self.nbytes


@dataclass(frozen=True)
class Block:
    """One allocation of device memory.

    Attributes:
        kind: "weight", "pool" (of streamed weights), "state" (host-visible), "activation"
            (host-visible where the device's memory is), "host" (host-visible, for inputs and
            outputs on devices with memory of their own, for outputs where the host reads the
            device's memory slowly) or "spill" (host-visible, for activations while they wait).
        nbytes: exactly to the end of the last place.
        alignment: the largest of its places.
        type_bits: memory types that suit all its places.
        places: of weights by offset (buffers, then images); of activations by storage id, and
            overlapping where lifetimes allow it.
    """

    kind: str
    nbytes: int
    alignment: int
    type_bits: int
    places: tuple[Place, ...]


@dataclass(frozen=True)
class Item:
    """A slice of a constant: whole rows, copied to the staging buffer and dispatched from there.

    Attributes:
        prepack: index in the work list's prepacks.
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
    """Slices that are in the staging buffer at once, packed by one submission.

    Attributes:
        items: in the order of the file.
        new_blocks: indices of the memory blocks to allocate before it.
    """

    items: tuple[Item, ...]
    new_blocks: tuple[int, ...] = ()


@dataclass(frozen=True)
class MemoryPlan:
    """All device memory of a method.

    Attributes:
        order: "lazy" (activations after prepack) or "eager" (everything before it).
        placements: of the weights.
        blocks: the weights' first, in the order of prepack, then activations.
        batches: the prepack schedule of the staged weights.
        weight_bytes: of all weight blocks (mapped and streamed weights have none).
        largest_weight: bytes of the largest weight in a block.
        activation_bytes: of the arena.
        host_bytes: of the host block, 0 where inputs and outputs are in the arena.
        spill_bytes: of the host's memory for activations while they wait; no device memory, and in
            no other figure.
        state_bytes: of what is kept from run to run.
        staging_bytes: of the staging buffer while prepacking.
        pool_bytes: of the pool that weights are streamed through.
        upload_bytes: of the staging buffer they pass on the way there, on devices with memory of
            their own.
        stream: the plan of streamed weights, None where there are none.
        sections: (first step, end) of what is submitted at once; a host call ends its section.
        peak_bytes: the most that is allocated at once.
        lower_bound: bytes of activations alive at once: no arena can be smaller.
        packing: the order of placing that gave the arena, for reports.
    """

    order: str
    placements: Placements
    blocks: tuple[Block, ...]
    batches: tuple[Batch, ...]
    weight_bytes: int
    largest_weight: int
    activation_bytes: int
    host_bytes: int
    staging_bytes: int
    peak_bytes: int
    lower_bound: int
    packing: str = ""
    pool_bytes: int = 0
    upload_bytes: int = 0
    stream: StreamPlan | None = None
    sections: tuple[tuple[int, int], ...] = ()
    spill_bytes: int = 0
    state_bytes: int = 0

    @cached_property
    def places(self) -> dict[int, tuple[int, Place]]:
        """(index of the block, place) by the id of the storage; untouched storages have none."""
        return {place.storage: (index, place) for index, block in enumerate(self.blocks)
                for place in block.places}

    @property
    def streams(self) -> bool:
        """Whether weights are streamed."""
        return self.stream is not None

    @cached_property
    def direct_blocks(self) -> tuple[int, ...]:
        """Indices of the blocks with weights that the host writes, allocated before the others."""
        return tuple(sorted({self.places[storage][0]
                             for storage in self.placements.storages("direct")}))

    @property
    def run_bytes(self) -> int:
        """Bytes beside the weights' while the program runs: activations in any kind of memory,
        states, and what weights are streamed through."""
        return (self.activation_bytes + self.host_bytes + self.state_bytes + self.pool_bytes
                + self.upload_bytes)

    def summary(self) -> dict[str, Any]:
        """The figures in bytes, without blocks and batches."""
        return {"order": self.order, "weight_bytes": self.weight_bytes,
                "largest_weight": self.largest_weight, "pool_bytes": self.pool_bytes,
                "upload_bytes": self.upload_bytes, "activation_bytes": self.activation_bytes,
                "host_bytes": self.host_bytes, "spill_bytes": self.spill_bytes,
                "state_bytes": self.state_bytes,
                "staging_bytes": self.staging_bytes, "peak_bytes": self.peak_bytes,
                "lower_bound": self.lower_bound}

    def describe(self) -> str:
        """The figures as lines of text."""
        weights = sum(block.kind == "weight" for block in self.blocks)
        slices = sum(len(batch.items) for batch in self.batches)
        notes = {
            "weights": f"{weights} blocks, largest weight {self.largest_weight:,} B",
            "pool": f"{len(self.placements.weights('stream'))} weights streamed",
            "uploads": "staging of streamed weights",
            "states": "kept from run to run",
            "activations": f"alive at once {self.lower_bound:,} B, packed {self.packing}",
            "host": "inputs and outputs",
            "spilled": "activations that wait in the host's memory",
            "staging": f"{slices} slices in {len(self.batches)} batches",
            "peak": f"{self.order} order",
        }
        figures = (self.weight_bytes, self.pool_bytes, self.upload_bytes, self.state_bytes,
                   self.activation_bytes, self.host_bytes, self.spill_bytes, self.staging_bytes,
                   self.peak_bytes)
        return "\n".join(f"{name:<12}{nbytes:>14,} B  {note}"
                         for (name, note), nbytes in zip(notes.items(), figures)
                         if nbytes or name not in ("pool", "uploads", "states", "host", "spilled"))
