"""Blocks: which storages lie together in one allocation of device memory, and where.

Weights are gathered in blocks in the order of the file; activations share one arena according to
their lifetimes.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from typing import Any

from vkrt.executable.memory import Block, Place
from vkrt.plan.arena import ArenaLayout, Request, pack
from vkrt.work.command_list import CommandList
from vkrt.work.tensor import Operand, Storage, round_up

# (bytes, alignment in bytes, bits of the memory types it may lie in) of a storage
Requirements = Callable[[Storage], tuple[int, int, int]]

ANY_TYPE = 0xFFFFFFFF


def total_bytes(blocks: Iterable[Block], *kinds: str) -> int:
    """The bytes of blocks, or of those of some kinds."""
    return sum(block.nbytes for block in blocks if not kinds or block.kind in kinds)


def lifetimes(work: CommandList) -> dict[int, tuple[int, int]]:
    """(first, last) time at which each storage holds something, by the id of the storage. Time 0 is
    when the host writes the inputs, i + 1 is step i, and after the last step the host reads the
    outputs."""
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
    for value in work.outputs:
        touch(value, len(work.steps) + 1)
    return result


class _WeightBlock:
    """A block of weights in the making: buffers first, then images, so that they meet only once."""

    def __init__(self, granularity: int):
        self.granularity = granularity
        self.type_bits = ANY_TYPE
        # Keys: whether it is an image. Offsets of images count from where the images begin.
        self._places: dict[bool, list[Place]] = {False: [], True: []}
        self._ends = {False: 0, True: 0}
        self._alignments = {False: 1, True: 1}

    def has_room(self, storage: Storage, needs: tuple[int, int, int], max_bytes: int) -> bool:
        """Whether the block with one more weight fits `max_bytes` and some type of memory."""
        nbytes, alignment, bits = needs
        image = storage.is_image
        ends, alignments = dict(self._ends), dict(self._alignments)
        ends[image] = round_up(ends[image], alignment) + nbytes
        alignments[image] = max(alignments[image], alignment)
        end = self._images_at(ends, alignments) + ends[True]
        return end <= max_bytes and bool(self.type_bits & bits)

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
        start = self._images_at(self._ends, self._alignments)
        places = (*self._places[False], *(Place(p.storage, start + p.offset, p.nbytes)
                                          for p in self._places[True]))
        return Block("weight", places[-1].end, max(self._alignments.values()), self.type_bits,
                     places)


def weight_blocks(work: CommandList, requirements: Requirements, granularity: int, block_bytes: int,
                  elsewhere: Container[int]) -> tuple[list[Block], int]:
    """Blocks of consecutive weights, and the bytes of the largest of these; the storages
    `elsewhere` have no block here: mapped, shared, or in the pool."""
    blocks: list[Block] = []
    block: _WeightBlock | None = None
    seen: set[int] = set()
    largest = 0
    for record in work.prepacks:
        storage = record.target.storage
        if storage.id in seen or storage.id in elsewhere:
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


def state_blocks(work: CommandList, requirements: Requirements, max_block_bytes: int
                 ) -> list[Block]:
    """The blocks of the states: nothing shares their memory, at any time. It is one block where the
    device allocates so much at once."""
    blocks: list[Block] = []
    places: list[Place] = []
    end, alignment, type_bits = 0, 1, ANY_TYPE
    for record in work.states:
        nbytes, own_alignment, bits = requirements(record.operand.storage)
        offset = round_up(end, own_alignment)
        if places and offset + nbytes > max_block_bytes:
            blocks.append(Block("state", end, alignment, type_bits, tuple(places)))
            places, offset, alignment, type_bits = [], 0, 1, ANY_TYPE
        places.append(Place(record.operand.storage.id, offset, nbytes))
        end, alignment, type_bits = offset + nbytes, max(alignment, own_alignment), type_bits & bits
    if places:
        blocks.append(Block("state", end, alignment, type_bits, tuple(places)))
    return blocks


def _kind(storage: Storage, is_read: bool, unified: bool, reads_slowly: bool) -> str:
    """The kind of block that a storage lies in while a method runs; `is_read`: by the host."""
    if unified:
        return "host" if is_read and reads_slowly else "activation"
    if storage.role == "spill":
        return "spill"
    return "host" if is_read or storage.role == "input" else "activation"


def activation_blocks(work: CommandList, requirements: Requirements, granularity: int,
                      unified: bool, reads_slowly: bool = False
                      ) -> tuple[list[Block], list[ArenaLayout]]:
    """The arena, and a host block: for inputs and outputs where device memory is not host-visible,
    or for what the host reads where it reads device memory slowly.

    Storages without a memory type in common (buffers and images of some drivers) get an arena each.
    """
    # Each with its kind, and its members with (bytes, alignment, memory types of all so far)
    groups: list[tuple[str, list[tuple[Storage, int, int, int]]]] = []
    lives = lifetimes(work)
    for storage in work.storages:
        if storage.id not in lives or storage.role in ("weight", "state"):
            continue
        kind = _kind(storage, storage.id in work.read_by_host, unified, reads_slowly)
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
