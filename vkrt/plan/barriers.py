"""Barriers between steps, from what they read and write in memory.

Steps are ordered by ranges of bytes, not by storages: activations share the arena. One global
barrier orders everything before it, so a step needs one only for a hazard with the steps since the
last one.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence

from vkrt.plan.memory_plan import MemoryPlan
from vkrt.work.command_list import CommandList
from vkrt.work.records import Dispatch, HostCall
from vkrt.work.tensor import MIN_BYTES, Operand

# (block, first byte, end) of what a step touches
Range = tuple[int, int, int]


class Ranges:
    """A set of bytes in blocks, as intervals that neither overlap nor touch."""

    def __init__(self) -> None:
        self._starts: dict[int, list[int]] = {}
        self._ends: dict[int, list[int]] = {}

    def add(self, touched: Range) -> None:
        block, start, end = touched
        starts, ends = self._starts.setdefault(block, []), self._ends.setdefault(block, [])
        low, high = bisect_left(ends, start), bisect_right(starts, end)
        if low < high:
            start, end = min(start, starts[low]), max(end, ends[high - 1])
        starts[low:high], ends[low:high] = [start], [end]

    def overlap(self, touched: Range) -> bool:
        """Whether any byte of the range is in the set."""
        block, start, end = touched
        ends = self._ends.get(block, ())
        low = bisect_right(ends, start)
        return low < len(ends) and self._starts[block][low] < end

    def clear(self) -> None:
        self._starts.clear()
        self._ends.clear()


def operand_range(plan: MemoryPlan, operand: Operand) -> Range | None:
    """The bytes of an operand: its part of a buffer, all of an image; None where it has no place.
    An operand without elements counts as the bytes that its descriptor has nevertheless."""
    found = plan.places.get(operand.storage.id)
    if found is None:
        return None
    block, place = found
    if operand.storage.is_image:
        return block, place.offset, place.end
    if not operand.nbytes:
        return block, place.offset, place.offset + MIN_BYTES
    start = place.offset + operand.offset
    if operand.offset + operand.nbytes >= operand.storage.nbytes:
        # Its view may have the storage's margin as well (`Policy.avoid_recompile_padding`).
        return block, start, place.end
    return block, start, start + operand.nbytes


def step_ranges(plan: MemoryPlan, operands: Sequence[Operand]) -> Iterator[Range]:
    """The bytes of those operands that have a place."""
    return (touched for operand in operands if (touched := operand_range(plan, operand)))


def barriers(work: CommandList, plan: MemoryPlan) -> tuple[bool, ...]:
    """For each step whether a global memory barrier (all writes to all reads and writes) has to
    come before it.

    A host call ends the submission, the host waits for that, and every submission begins with a
    barrier of its own: neither the call nor the step behind it needs a barrier here.
    """
    first_uses = _first_uses(work)
    reads, writes = Ranges(), Ranges()
    result = []
    for index, step in enumerate(work.steps):
        if isinstance(step, HostCall):
            reads.clear()
            writes.clear()
            result.append(False)
            continue
        read = list(step_ranges(plan, step.reads))
        written = list(step_ranges(plan, step.writes))
        # The transition of an image's layout writes it.
        written += step_ranges(plan, first_uses.get(index, ()))
        hazard = (any(writes.overlap(touched) for touched in read)
                  or any(writes.overlap(touched) or reads.overlap(touched) for touched in written))
        if hazard:
            reads.clear()
            writes.clear()
        for touched in read:
            reads.add(touched)
        for touched in written:
            writes.add(touched)
        result.append(hazard)
    return tuple(result)


def transitions(work: CommandList, plan: MemoryPlan,
                needed: Sequence[bool]) -> dict[int, tuple[int, ...]]:
    """Ids of the image storages to bring from UNDEFINED to GENERAL, by the step to do it before,
    which may also be a copy of buffers; `needed` is the result of `barriers`.

    Images of activations need the transition once in every run, because other storages in the arena
    may have overwritten them. Transitions move up to the last barrier before the first use, or to
    the start of the submission, and stall nothing more. If the old bytes were used after that
    barrier, the first use would have a barrier of its own.
    """
    place = 0
    first_uses = _first_uses(work)
    result: dict[int, tuple[int, ...]] = {}
    for index, step in enumerate(work.steps):
        if isinstance(step, HostCall):
            place = index + 1
        elif needed[index]:
            place = index
        ids = tuple(operand.storage.id for operand in first_uses.get(index, ())
                    if operand.storage.id in plan.places)
        if ids:
            result[place] = result.get(place, ()) + ids
    return result


def _first_uses(work: CommandList) -> dict[int, list[Operand]]:
    """The image operands that each step is the first to touch, without weights, by step."""
    seen: set[int] = set()
    result: dict[int, list[Operand]] = {}
    for index, step in enumerate(work.steps):
        if not isinstance(step, Dispatch):
            continue
        for operand in (*step.writes, *step.reads):
            storage = operand.storage
            if storage.is_image and storage.role != "weight" and storage.id not in seen:
                seen.add(storage.id)
                result.setdefault(index, []).append(operand)
    return result
