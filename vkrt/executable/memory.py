"""The device memory of a method: its blocks, what lies where in them, and its bytes in figures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

BlockKind = str  # one of `BLOCK_KINDS`; files have its position there
BLOCK_KINDS = ("weight", "pool", "state", "activation", "host", "spill")
# The kinds of weights, and the kinds of activations, which lie in the arena
WEIGHT_KINDS = ("weight", "pool")
ARENA_KINDS = ("activation", "host", "spill")
# Parts of the staging buffer through which weights are streamed to memory of the device's own
SLOTS = 2


class Place(NamedTuple):
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


class Block(NamedTuple):
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

    kind: BlockKind
    nbytes: int
    alignment: int
    type_bits: int
    places: tuple[Place, ...]


@dataclass(frozen=True)
class MemoryFigures:
    """Bytes of a method's device memory, as planned.

    Attributes:
        order: "lazy" (activations after prepack) or "eager" (everything before it).
        weight_bytes: of all weight blocks (mapped and streamed weights have none).
        largest_weight: bytes of the largest weight in a block.
        activation_bytes: of the arena.
        host_bytes: of the host block, 0 where inputs and outputs are in the arena.
        staging_bytes: of the staging buffer while prepacking.
        peak_bytes: the most that is allocated at once.
        lower_bound: bytes of activations alive at once: no arena can be smaller.
        pool_bytes: of the pool that weights are streamed through.
        upload_bytes: of the staging buffer that weights pass on the way to the pool, on devices
            with memory of their own.
        spill_bytes: of the host's memory for activations while they wait; no device memory, and in
            no other figure.
        state_bytes: of what is kept from run to run.
        row_bytes: of the rows that a run reads from tables; no device memory of their own.
        packing: the order of placing that gave the arena, for reports.
    """

    order: str
    weight_bytes: int
    largest_weight: int
    activation_bytes: int
    host_bytes: int
    staging_bytes: int
    peak_bytes: int
    lower_bound: int
    pool_bytes: int = 0
    upload_bytes: int = 0
    spill_bytes: int = 0
    state_bytes: int = 0
    row_bytes: int = 0
    packing: str = ""

    @property
    def run_bytes(self) -> int:
        """Bytes, without those of weights, while the program runs: activations in any kind of
        memory, states, and what weights are streamed through."""
        return (self.activation_bytes + self.host_bytes + self.state_bytes + self.pool_bytes
                + self.upload_bytes)

    def summary(self) -> dict[str, Any]:
        """The figures in bytes, by their names."""
        return {"order": self.order, "weight_bytes": self.weight_bytes,
                "largest_weight": self.largest_weight, "pool_bytes": self.pool_bytes,
                "upload_bytes": self.upload_bytes, "activation_bytes": self.activation_bytes,
                "host_bytes": self.host_bytes, "spill_bytes": self.spill_bytes,
                "state_bytes": self.state_bytes, "row_bytes": self.row_bytes,
                "staging_bytes": self.staging_bytes, "peak_bytes": self.peak_bytes,
                "lower_bound": self.lower_bound}

    def describe(self) -> str:
        """The figures as lines of text."""
        lines = (("weights", self.weight_bytes, f"largest weight {self.largest_weight:,} B"),
                 ("pool", self.pool_bytes, "of streamed weights"),
                 ("uploads", self.upload_bytes, "staging of streamed weights"),
                 ("states", self.state_bytes, "kept from run to run"),
                 ("activations", self.activation_bytes,
                  f"alive at once {self.lower_bound:,} B, packed {self.packing}"),
                 ("host", self.host_bytes, "inputs and outputs"),
                 ("spilled", self.spill_bytes, "activations that wait in the host's memory"),
                 ("staging", self.staging_bytes, "while weights are packed"),
                 ("peak", self.peak_bytes, f"{self.order} order"))
        always = ("weights", "activations", "staging", "peak")
        return "\n".join(f"{name:<12}{nbytes:>14,} B  {note}" for name, nbytes, note in lines
                         if nbytes or name in always)
