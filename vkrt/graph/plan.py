"""The memory plan: where every storage lies, and how many bytes are allocated when.

A pure function of the work list and of what the device's driver says storages need. Weights are
gathered in blocks in the order of the file, activations share one arena according to their
lifetimes, and constants reach the weights through one staging buffer that is released before the
arena is allocated:

    device peak = max(weights + staging, weights + activations)

Nothing is rounded but for the alignments the driver asks for, so a counting allocator sees exactly
the predicted bytes (`simulate`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from vkrt.errors import InputError
from vkrt.graph.arena import Packing, Request, pack, round_up
from vkrt.graph.records import WorkList
from vkrt.graph.schedule import Batch, chunk_for, schedule
from vkrt.graph.tensor import Operand, Storage

# (bytes, alignment in bytes, bits of the memory types it may lie in) of a storage
Requirements = Callable[[Storage], tuple[int, int, int]]

DEFAULT_CHUNK = 8 << 20
BLOCK_BYTES = 2 << 20
ANY_TYPE = 0xFFFFFFFF
ORDERS = ("lazy", "eager")


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
        kind: "weight", "activation" (host-visible where the device's memory is) or "host"
            (host-visible, for inputs and outputs of devices with memory of their own).
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
class MemoryPlan:
    """All device memory of a method.

    Attributes:
        order: "lazy" (activations after prepack) or "eager" (everything before it).
        blocks: the weights' first, in the order of prepack, then activations.
        batches: the prepack schedule.
        weight_bytes: of all weight blocks.
        largest_weight: bytes of the largest weight.
        activation_bytes: of the arena.
        host_bytes: of the host block, 0 where inputs and outputs are in the arena.
        staging_bytes: of the staging buffer while prepacking.
        peak_bytes: the most that is allocated at once.
        lower_bound: bytes of activations alive at once: no arena can be smaller.
        packing: which way of packing gave the arena, for reports.
    """

    order: str
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

    @cached_property
    def places(self) -> dict[int, tuple[int, Place]]:
        """(index of the block, place) by the id of the storage; untouched storages have none."""
        return {place.storage: (index, place) for index, block in enumerate(self.blocks)
                for place in block.places}

    @cached_property
    def phases(self) -> tuple[tuple[str, int], ...]:
        """(checkpoint, device bytes allocated then), in order."""
        weights, everything = self.weight_bytes, self.weight_bytes + self.run_bytes
        early, late = (0, weights) if self.order == "lazy" else (everything, everything)
        return (("graph built", 0), ("prepack start", early), ("after prepack", late),
                ("before execute", everything), ("end of execute", everything))

    @property
    def run_bytes(self) -> int:
        """Bytes of activations in any kind of memory."""
        return self.activation_bytes + self.host_bytes

    def summary(self) -> dict[str, Any]:
        """The figures in bytes, without blocks and batches."""
        return {"order": self.order, "weight_bytes": self.weight_bytes,
                "largest_weight": self.largest_weight, "activation_bytes": self.activation_bytes,
                "host_bytes": self.host_bytes, "staging_bytes": self.staging_bytes,
                "peak_bytes": self.peak_bytes, "lower_bound": self.lower_bound}

    def as_dict(self) -> dict[str, Any]:
        """Everything, for JSON."""
        return {**self.summary(), "packing": self.packing,
                "phases": [list(phase) for phase in self.phases],
                "blocks": [asdict(block) for block in self.blocks],
                "batches": [asdict(batch) for batch in self.batches]}

    def describe(self) -> str:
        """The figures as lines of text."""
        weights = sum(block.kind == "weight" for block in self.blocks)
        slices = sum(len(batch.items) for batch in self.batches)
        notes = {
            "weights": f"{weights} blocks, largest weight {self.largest_weight:,} B",
            "activations": f"alive at once {self.lower_bound:,} B, packed {self.packing}",
            "host": "inputs and outputs",
            "staging": f"{slices} slices in {len(self.batches)} batches",
            "peak": f"{self.order} order",
        }
        figures = (self.weight_bytes, self.activation_bytes, self.host_bytes, self.staging_bytes,
                   self.peak_bytes)
        return "\n".join(f"{name:<12}{nbytes:>14,} B  {note}"
                         for (name, note), nbytes in zip(notes.items(), figures)
                         if nbytes or name != "host")


def default_requirements(storage: Storage) -> tuple[int, int, int]:
    """Requirements without a driver: buffers as CPU drivers have them, in multiples of 64 bytes."""
    return round_up(storage.nbytes, 64), 64, ANY_TYPE


def plan(work: WorkList, requirements: Requirements = default_requirements, *,
         order: str = "lazy", chunk: int = DEFAULT_CHUNK, unified: bool = True,
         granularity: int = 1, block_bytes: int = BLOCK_BYTES) -> MemoryPlan:
    """Places every storage of a work list.

    Args:
        work: what `ops` made of a graph.
        requirements: asks the driver for a storage's (bytes, alignment, memory type bits).
        order: "lazy" or "eager", see `MemoryPlan`.
        chunk: the most bytes of staging; exceeded only by a constant whose single row is larger.
        unified: the device's memory is host-visible, so inputs and outputs lie in the arena.
        granularity: bytes that buffers and images in a block are kept apart by (Vulkan's
            bufferImageGranularity).
        block_bytes: the most bytes of a block that several weights share.

    Raises:
        InputError: unknown order, or sizes that are not positive.
    """
    if order not in ORDERS:
        raise InputError(f"order={order!r}: expected one of {', '.join(ORDERS)}")
    for name, value in (("chunk", chunk), ("granularity", granularity),
                        ("block_bytes", block_bytes)):
        if value < 1:
            raise InputError(f"{name}={value}: expected a positive number of bytes")
    weights, largest = _weight_blocks(work, requirements, granularity, block_bytes)
    arena, packings = _activation_blocks(work, requirements, granularity, unified)
    blocks = weights + arena
    weight_bytes = sum(block.nbytes for block in weights)
    activation_bytes = sum(block.nbytes for block in arena if block.kind == "activation")
    host_bytes = sum(block.nbytes for block in arena if block.kind == "host")

    block_of = {} if order == "eager" else {
        place.storage: index for index, block in enumerate(weights) for place in block.places}
    chunk = chunk_for(work.prepacks, chunk, activation_bytes + host_bytes)
    batches, staging = schedule(work.prepacks, chunk, block_of)
    run_bytes = activation_bytes + host_bytes
    peak = weight_bytes + (run_bytes + staging if order == "eager" else max(run_bytes, staging))
    measured = [packing for block, packing in zip(arena, packings) if block.kind == "activation"]
    return MemoryPlan(
        order=order, blocks=tuple(blocks), batches=batches, weight_bytes=weight_bytes,
        largest_weight=largest, activation_bytes=activation_bytes, host_bytes=host_bytes,
        staging_bytes=staging, peak_bytes=peak,
        lower_bound=sum(packing.lower_bound for packing in measured),
        packing="; ".join(packing.method for packing in measured))


def simulate(plan: MemoryPlan) -> list[tuple[str, int]]:
    """What a counting allocator sees: (event, device bytes allocated after it), in order.

    The checkpoints of `MemoryPlan.phases` are events too.
    """
    events: list[tuple[str, int]] = []
    used = 0

    def note(event: str, change: int = 0) -> None:
        nonlocal used
        used += change
        events.append((event, used))

    def allocate(kinds: tuple[str, ...]) -> None:
        for index, block in enumerate(plan.blocks):
            if block.kind in kinds:
                note(f"allocate {block.kind} block {index}", block.nbytes)

    note("graph built")
    if plan.order == "eager":
        allocate(("weight",))
        allocate(("activation", "host"))
    note("prepack start")
    if plan.staging_bytes:
        note("allocate staging", plan.staging_bytes)
    for number, batch in enumerate(plan.batches):
        for index in batch.new_blocks:
            note(f"allocate weight block {index}", plan.blocks[index].nbytes)
        note(f"pack batch {number}")
    if plan.staging_bytes:
        note("release staging", -plan.staging_bytes)
    note("after prepack")
    if plan.order == "lazy":
        allocate(("activation", "host"))
    note("before execute")
    note("end of execute")
    return events


def lifetimes(work: WorkList) -> dict[int, tuple[int, int]]:
    """(first, last) time at which each storage holds something, by the id of the storage.

    Time 0 is when the host writes the inputs, i + 1 is step i, and after the last step comes the
    time when the host reads the outputs.
    """
    result: dict[int, tuple[int, int]] = {}

    def touch(operand: Any, time: int) -> None:
        if isinstance(operand, Operand):
            first, last = result.get(operand.storage.id, (time, time))
            result[operand.storage.id] = (min(first, time), max(last, time))

    for operand in work.inputs:
        touch(operand, 0)
    for index, step in enumerate(work.steps):
        for operand in (*step.writes, *step.reads):
            touch(operand, index + 1)
    for operand in work.outputs:
        touch(operand, len(work.steps) + 1)
    return result


class _WeightBlock:
    """A block of weights in the making: buffers first, then images, so that they meet only once."""

    def __init__(self, granularity: int):
        self.granularity = granularity
        self.type_bits = ANY_TYPE
        # By "is an image"; offsets of images count from where the images begin.
        self._places: dict[bool, list[Place]] = {False: [], True: []}
        self._ends = {False: 0, True: 0}
        self._alignments = {False: 1, True: 1}

    def has_room(self, storage: Storage, needs: tuple[int, int, int], most: int) -> bool:
        """Whether one more weight leaves it within `most` bytes and some type of memory."""
        nbytes, alignment, bits = needs
        image = storage.is_image
        ends, alignments = dict(self._ends), dict(self._alignments)
        ends[image] = round_up(ends[image], alignment) + nbytes
        alignments[image] = max(alignments[image], alignment)
        end = self._images_at(ends, alignments) + ends[True]
        return end <= most and bool(self.type_bits & bits)

    def add(self, storage: Storage, needs: tuple[int, int, int]) -> None:
        nbytes, alignment, bits = needs
        image = storage.is_image
        offset = round_up(self._ends[image], alignment)
        self._places[image].append(Place(storage.id, offset, nbytes))
        self._ends[image] = offset + nbytes
        self._alignments[image] = max(self._alignments[image], alignment)
        self.type_bits &= bits

    def _images_at(self, ends: dict[bool, int], alignments: dict[bool, int]) -> int:
        """Where the images begin: a page holds only buffers or only images."""
        if not ends[True]:
            return ends[False]
        return round_up(round_up(ends[False], self.granularity), alignments[True])

    def finished(self) -> Block:
        """The block, exactly as large as its places."""
        start = self._images_at(self._ends, self._alignments)
        places = (*self._places[False], *(Place(p.storage, start + p.offset, p.nbytes)
                                          for p in self._places[True]))
        return Block("weight", places[-1].end, max(self._alignments.values()), self.type_bits,
                     places)


def _weight_blocks(work: WorkList, requirements: Requirements, granularity: int,
                   block_bytes: int) -> tuple[list[Block], int]:
    """Blocks of consecutive weights, and the bytes of the largest weight."""
    blocks: list[Block] = []
    block: _WeightBlock | None = None
    seen: set[int] = set()
    largest = 0
    for record in work.prepacks:
        storage = record.target.storage
        if storage.id in seen:
            continue
        seen.add(storage.id)
        needs = requirements(storage)
        largest = max(largest, needs[0])
        if block is not None and not block.has_room(storage, needs, block_bytes):
            blocks.append(block.finished())
            block = None
        block = block or _WeightBlock(granularity)
        block.add(storage, needs)
    if block is not None:
        blocks.append(block.finished())
    return blocks, largest


def _activation_blocks(work: WorkList, requirements: Requirements, granularity: int,
                       unified: bool) -> tuple[list[Block], list[Packing]]:
    """The arena, and the host block where the device's memory is not host-visible.

    Storages without a memory type in common (buffers and images of some drivers) get an arena each.
    """
    groups: list[tuple[str, list[tuple[Storage, int, int, int]]]] = []
    lives = lifetimes(work)
    for storage in work.storages:
        if storage.id not in lives or storage.role == "weight":
            continue
        kind = "host" if not unified and storage.role in ("input", "output") else "activation"
        nbytes, alignment, bits = requirements(storage)
        for group_kind, members in groups:
            if group_kind == kind and members[-1][3] & bits:
                members.append((storage, nbytes, alignment, members[-1][3] & bits))
                break
        else:
            groups.append((kind, [(storage, nbytes, alignment, bits)]))
    groups.sort(key=lambda group: group[0])
    blocks, packings = [], []
    for kind, members in groups:
        packing = pack([Request(nbytes, alignment, *lives[storage.id], image=storage.is_image)
                        for storage, nbytes, alignment, _ in members], granularity)
        places = tuple(Place(member[0].id, offset, member[1])
                       for member, offset in zip(members, packing.offsets))
        blocks.append(Block(kind, packing.nbytes, max(member[2] for member in members),
                            members[-1][3], places))
        packings.append(packing)
    return blocks, packings
