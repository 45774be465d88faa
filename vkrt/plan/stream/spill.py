"""Spilling: activations that wait long for their next use wait in the host's memory.

A U-Net keeps the maps of its way down for its way up, and its arena is largest in between. On a
device with memory of its own such a map can be copied to the host's memory after one use, and back
into another storage before the next: two short lifetimes in place of a long one. Where the device
computes in the host's memory there is nothing to gain.

A pure pass over a command list; it inserts copies and changes nothing else.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from dataclasses import dataclass, field, replace
from heapq import heapify, heappop, heappush
from itertools import accumulate
from typing import Any

from vkrt.errors import InputError
from vkrt.plan.blocks import Requirements, activation_blocks, lifetimes, total_bytes
from vkrt.work.command_list import CommandList
from vkrt.work.records import HostCall, Move
from vkrt.work.tensor import Operand, Storage, StorageList, itemsize, round_up

# How many steps before its use a copy back may be done, where the arena has room for it.
LOOKAHEAD = 2
# What a pair of copies costs beside its bytes, in bytes.
PAIR_COST = 16 << 10
# How often a lower limit is tried when packing needs more than the bytes alive at once.
ATTEMPTS = 4


@dataclass(frozen=True)
class Spill:
    """One idle time of an activation that is spent in the host's memory."""

    storage: int  # id of the activation
    nbytes: int  # of it
    after: int  # the step (of the original command list) behind which it is copied to the host
    before: int  # the step in front of which it is copied back
    use: int  # the step for which it is copied back
    copied: bool = True  # False where the host still has it from an earlier spill


@dataclass(frozen=True)
class SpillReport:
    """What spilling does."""

    # Bytes of the arena
    arena_before: int
    arena_after: int
    spills: tuple[Spill, ...] = ()  # in the order of their steps; empty where nothing was inserted
    host_bytes: int = 0  # the most bytes of the host's memory that they occupy at once
    notes: tuple[str, ...] = ()  # in plain words


def spill(work: CommandList, requirements: Requirements, arena_limit: int, unified: bool, *,
          granularity: int = 1, lookahead: int = LOOKAHEAD) -> tuple[CommandList, SpillReport]:
    """Spills as few bytes as bring the arena down to a limit, or as near to it as can be: of linear
    buffers that no host call touches, and that are no inputs and no outputs. Where nothing is
    spilled the command list is the same object.

    Args:
        arena_limit: the most bytes that activations in device memory should take.
        unified: the device computes in the host's memory.
        granularity: Vulkan's bufferImageGranularity.
        lookahead: how many steps before its use a copy back may be done.

    Raises:
        InputError: a limit or a lookahead below 0.
    """
    for name, value in (("arena_limit", arena_limit), ("lookahead", lookahead)):
        if value < 0:
            raise InputError(f"{name}={value}: expected 0 or more")
    before = best = _arena(work, requirements, granularity, unified)
    if unified:
        return work, SpillReport(before, before, notes=(
            "nothing to gain by spilling: the device computes in the host's memory",))
    result, chosen = work, _Spills(work, requirements)
    target = arena_limit
    for _ in range(ATTEMPTS if before > arena_limit else 0):
        spills = _Spills(work, requirements)
        spills.choose(target)
        if not spills.taken:
            break
        rewritten = spills.rewritten()
        arena = _arena(rewritten, requirements, granularity, unified)
        if arena < best:
            result, chosen, best = rewritten, spills, arena
        target -= arena - arena_limit
        if arena <= arena_limit or target < 0:
            break
    if not chosen.taken:
        notes = () if before <= arena_limit else (
            "nothing to gain by spilling: no idle activation lies in the moments of most bytes",)
        return work, SpillReport(before, before, notes=notes)
    if lookahead and chosen.hoist(lookahead, max(arena_limit, best)):
        earlier = chosen.rewritten()
        arena = _arena(earlier, requirements, granularity, unified)
        if arena <= max(arena_limit, best):
            result, best = earlier, arena
        else:
            chosen.bring_back()
    report = SpillReport(before, best, chosen.report(), _host_bytes(result),
                         notes=chosen.notes(before, best, arena_limit))
    return result, report


def _arena(work: CommandList, requirements: Requirements, granularity: int, unified: bool) -> int:
    device = replace(work, storages=tuple(s for s in work.storages if s.role != "spill"))
    blocks, _ = activation_blocks(device, requirements, granularity, unified)
    return total_bytes(blocks, "activation")


def _host_bytes(work: CommandList) -> int:
    """The most bytes of copies in the host's memory at once."""
    lives = lifetimes(work)
    changes = [0] * (len(work.steps) + 3)
    for storage in work.storages:
        if storage.role == "spill":
            first, last = lives[storage.id]
            changes[first] += storage.nbytes
            changes[last + 1] -= storage.nbytes
    return max(accumulate(changes))


@dataclass
class _Gap:
    """An idle time of a storage: between its uses at two times (see `lifetimes`)."""

    storage: Storage
    size: int
    last: int
    use: int
    back: int = field(init=False)  # the time it is copied back in front of

    def __post_init__(self):
        self.back = self.use

    @property
    def idle(self) -> range:
        """The times it need not be in device memory."""
        return range(self.last + 1, self.back)


class _Spills:
    """The idle times of activations, and which of them are spent in the host's memory."""

    def __init__(self, work: CommandList, requirements: Requirements):
        self.work = work
        self.taken: list[_Gap] = []
        self._lives = lifetimes(work)
        self._touched, self._written = _uses(work)
        self._load = [0] * (len(work.steps) + 2)
        self._gaps: list[_Gap] = []
        written = {operand.storage.id for step in work.steps if isinstance(step, HostCall)
                   for operand in step.writes}
        for storage in work.storages:
            if (storage.id not in self._lives or storage.role != "activation"
                    or storage.id in work.read_by_host):
                continue
            nbytes, alignment, _ = requirements(storage)
            size = round_up(nbytes, alignment)
            first, last = self._lives[storage.id]
            for time in range(first, last + 1):
                self._load[time] += size
            if not storage.is_image and storage.id not in written:
                times = self._touched[storage.id]
                self._gaps += [_Gap(storage, size, a, b) for a, b in zip(times, times[1:])
                               if b - a > 1]

    def choose(self, target: int) -> None:
        """Takes idle times until no moment has more than `target` bytes, or as near as it gets."""
        lowest = list(self._load)
        for gap in self._gaps:
            for time in gap.idle:
                lowest[time] -= gap.size
        target = max(target, *lowest)
        # A heap of idle times by their cost. Each one that is taken leaves the others less to save,
        # so costs only grow: the first whose cost is still what it was is the cheapest of all.
        costs = [(self._cost(gap, target), number) for number, gap in enumerate(self._gaps)]
        heapify(costs)
        over = sum(load > target for load in self._load)
        while over:
            cost, number = heappop(costs)
            gap = self._gaps[number]
            if (now := self._cost(gap, target)) != cost:
                heappush(costs, (now, number))
                continue
            self.taken.append(gap)
            over -= sum(target < self._load[time] <= target + gap.size for time in gap.idle)
            self._change(gap.idle, -gap.size)
        # Idle times that later ones have made needless
        needed = []
        for gap in self.taken:
            if all(self._load[time] + gap.size <= target for time in gap.idle):
                self._change(gap.idle, gap.size)
            else:
                needed.append(gap)
        self.taken = needed
        self.taken.sort(key=lambda gap: (gap.last, gap.storage.id))

    def _cost(self, gap: _Gap, target: int) -> tuple[float, int]:
        """Minus the bytes over the target that an idle time saves, for each byte moved."""
        load, size = self._load, gap.size
        saved = 0
        for time in gap.idle:
            over = load[time] - target
            if over > 0:
                saved += over if over < size else size
        return -saved / (size + PAIR_COST), -saved

    def _change(self, times: range, nbytes: int) -> None:
        for time in times:
            self._load[time] += nbytes

    def hoist(self, lookahead: int, target: int) -> bool:
        """Copies activations back earlier where the arena has room; returns whether any moved."""
        for gap in sorted(self.taken, key=lambda gap: gap.use):
            while (gap.use - gap.back < lookahead and gap.back - 1 > gap.last + 1
                   and self._load[gap.back - 1] + gap.size <= target):
                gap.back -= 1
                self._load[gap.back] += gap.size
        return any(gap.back < gap.use for gap in self.taken)

    def bring_back(self) -> None:
        for gap in self.taken:
            self._change(range(gap.back, gap.use), -gap.size)
            gap.back = gap.use

    def report(self) -> tuple[Spill, ...]:
        copied = {id(gaps[0]) for gaps in self._by_copy()}
        return tuple(Spill(gap.storage.id, gap.storage.nbytes, gap.last - 1, gap.back - 1,
                           gap.use - 1, id(gap) in copied) for gap in self.taken)

    def notes(self, before: int, after: int, limit: int) -> tuple[str, ...]:
        count = len(self.taken)
        notes = [f"{count} idle {'time' if count == 1 else 'times'} of activations in the host's "
                 f"memory: the arena has {after:,} B instead of {before:,}"]
        if after > limit:
            notes.append(f"the arena cannot be brought to {limit:,} B: too much is used at once")
        return tuple(notes)

    def _by_copy(self) -> list[list[_Gap]]:
        """The idle times, grouped by the copy that serves them: nothing writes in between."""
        result: list[list[_Gap]] = []
        open_: dict[int, list[_Gap]] = {}
        for gap in self.taken:
            copies = open_.get(gap.storage.id)
            writes = self._written[gap.storage.id]
            if copies and bisect_right(writes, gap.last) == bisect_left(writes, copies[-1].use):
                copies.append(gap)
            else:
                result.append([gap])
                open_[gap.storage.id] = result[-1]
        return result

    def rewritten(self) -> CommandList:
        work = self.work
        storages = StorageList(list(work.storages))
        behind: dict[int, list[Move]] = defaultdict(list)
        ahead: dict[int, list[Move]] = defaultdict(list)
        renamed: dict[int, tuple[list[int], list[Storage]]] = {}
        steps = work.steps
        # The storage that holds each activation after the copies so far
        current = {gap.storage.id: gap.storage for gap in self.taken}
        for gaps in self._by_copy():
            original = gaps[0].storage
            host = storages.new("spill", original.nbytes, original.dtype)
            for number, gap in enumerate(gaps):
                if not number:
                    behind[gap.last - 1].append(Move(
                        steps[gap.last - 1].node, "spill", (_whole(host),),
                        (_whole(current[original.id]),)))
                fresh = storages.new("activation", original.nbytes, original.dtype)
                ahead[gap.back - 1].append(Move(
                    steps[gap.use - 1].node, "reload", (_whole(fresh),), (_whole(host),)))
                uses, names = renamed.setdefault(original.id, ([], []))
                uses.append(gap.use)
                names.append(fresh)
                current[original.id] = fresh
        result: list[Any] = []
        for index, step in enumerate(steps):
            result += ahead[index]
            result.append(_with_storages(step, index + 1, renamed))
            result += behind[index]
        return replace(work, storages=tuple(storages.items), steps=tuple(result))


def _uses(work: CommandList) -> tuple[dict[int, list[int]], dict[int, list[int]]]:
    """The times at which each storage is touched, and written, ascending, by its id."""
    touched: dict[int, list[int]] = defaultdict(list)
    written: dict[int, list[int]] = defaultdict(list)
    for index, step in enumerate(work.steps):
        writes = {operand.storage.id for operand in step.writes}
        for storage in writes:
            written[storage].append(index + 1)
        for storage in writes.union(operand.storage.id for operand in step.reads):
            touched[storage].append(index + 1)
    return touched, written


def _whole(storage: Storage) -> Operand:
    return Operand(storage, (storage.nbytes // itemsize(storage.dtype),), storage.dtype, (0,),
                   raw=True)


def _with_storages(step: Any, time: int,
                   renamed: dict[int, tuple[list[int], list[Storage]]]) -> Any:
    """A step, with the storages that hold its activations at its time."""
    def now(operand: Operand) -> Operand:
        uses, names = renamed.get(operand.storage.id, ([], []))
        number = bisect_right(uses, time)
        return replace(operand, storage=names[number - 1]) if number else operand

    if not any(operand.storage.id in renamed for operand in (*step.writes, *step.reads)):
        return step
    return replace(step, writes=tuple(map(now, step.writes)), reads=tuple(map(now, step.reads)))
