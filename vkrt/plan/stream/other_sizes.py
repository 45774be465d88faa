"""Streaming at several sizes: one plan of reloads serves all command lists of a method.

At other sizes the kernels are others: one may read at once what several read one after another,
read a weight earlier or later than others, and the host may read rows in between. The reloads,
their times and their places stay, and reloads under way go on when the sizes change. So a weight
has its place for as long as any of the known sizes needs it (`residency`), in the order in which
the command list reads weights that the plan is made for. The steps of each command list are then
cut into the submissions of the plan (`submissions_at`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from vkrt.errors import UnsupportedError
from vkrt.plan.placement import Placements
from vkrt.plan.stream.records import Release, StreamPlan
from vkrt.work.command_list import CommandList, WeightReads
from vkrt.work.records import HostCall


@dataclass(frozen=True)
class Residency:
    """When weights are needed, in steps of the command list that a plan is made for.

    Attributes:
        spans: the first and the last step of each weight, by the id of its storage.
        ends: steps behind which a submission ends because the host has work there at other sizes.
    """

    spans: Mapping[int, tuple[int, int]]
    ends: frozenset[int] = frozenset()


def weight_reads(work: CommandList) -> WeightReads:
    """What a command list reads of its weights, and where the host has work, in order."""
    found = []
    for step in work.steps:
        weights = frozenset(operand.storage.id for operand in step.reads
                            if operand.storage.role == "weight")
        is_host = isinstance(step, HostCall)
        if weights or is_host:
            found.append((weights, is_host))
    return tuple(found)


def residency(work: CommandList) -> Residency:
    """When the weights of a command list are needed so that it can be streamed at all of its
    `other_sizes`, too."""
    spans = {weight.storage: (weight.users[0], weight.users[-1])
             for weight in work.weight_table if weight.users}
    calls = [i for i, step in enumerate(work.steps) if isinstance(step, HostCall)]
    merger = _Merger(spans, calls, max(len(work.steps) - 1, 0))
    for reads in work.other_sizes:
        merger.add(reads)
    return Residency(merger.spans, frozenset(merger.ends))


class _Merger:
    """Puts what other sizes read into the time of one command list.

    Every read gets a step of that command list, none earlier than the one before it, at which all
    weights that are read there are on the device.
    """

    def __init__(self, spans: Mapping[int, tuple[int, int]], calls: Sequence[int], last: int):
        self.spans = dict(spans)
        self.ends: set[int] = set()
        self._calls = calls
        self._last = last

    def add(self, reads: WeightReads) -> None:
        left: dict[int, int] = {}  # how often each weight is still read
        for weights, _ in reads:
            for weight in weights & self.spans.keys():
                left[weight] = left.get(weight, 0) + 1
        now = 0
        for number, (read, is_host) in enumerate(reads):
            weights = read & self.spans.keys()
            for weight in weights:
                left[weight] -= 1
            if is_host:
                # What the host itself reads is never streamed.
                self.spans.update(dict.fromkeys(weights, (0, self._last)))
                now = self._call(now, reads[number + 1:])
            else:
                now = self._read(now, weights, left)

    def _read(self, now: int, weights: frozenset[int], left: Mapping[int, int]) -> int:
        """The step at which a kernel reads these weights."""
        goal = max((self.spans[weight][0] for weight in weights), default=now)
        if goal > now:
            # Weights that are read later here, but by then would have been released, would have to
            # stay; or these weights come earlier. Whichever are fewer have the longer time.
            waiting = [weight for weight, count in left.items()
                       if count and weight not in weights and now <= self.spans[weight][1] < goal]
            early = [weight for weight in weights if self.spans[weight][0] > now]
            if len(early) > len(waiting) or not waiting:
                now = goal
        for weight in weights:
            first, last = self.spans[weight]
            self.spans[weight] = min(first, now), max(last, now)
        return now

    def _call(self, now: int, behind: WeightReads) -> int:
        """The step behind a call of the host: behind one of the command list's own calls if that is
        before the next read."""
        weights = next((read & self.spans.keys() for read, _ in behind
                        if read & self.spans.keys()), frozenset())
        until = max((self.spans[weight][0] for weight in weights), default=self._last + 1)
        call = next((call for call in self._calls if now <= call < until), None)
        if call is None:
            call = min(now, self._last)
            self.ends.add(call)
        return min(call, self._last) + 1


def submissions_at(stream: StreamPlan, placements: Placements, work: CommandList,
                   ) -> tuple[tuple[int, int], ...]:
    """(first step, end) of each submission of a plan, in a command list at other sizes. Each step
    is in the earliest submission in which the weights that it reads are on the device.

    Args:
        placements: of the weights of the command list that the plan is made for.
        work: has these weights in the same storages.

    Raises:
        UnsupportedError: a weight would be read while another one has its place.
    """
    count = len(stream.submissions)
    weights = {placements.weight_table[i].storage: i for i in stream.streamed}
    needed = {i: number for number, submission in enumerate(stream.submissions)
              for i in submission.waits}
    released = {r.weight: r.submission for r in stream.records if isinstance(r, Release)}
    starts, now = [0], 0
    for index, step in enumerate(work.steps):
        read = {weights[operand.storage.id] for operand in step.reads
                if operand.storage.id in weights}
        now = max([now, *(needed[i] for i in read)])
        late = min(read, key=lambda i: released[i], default=None)
        if now >= count or (late is not None and released[late] < now):
            raise UnsupportedError(_refusal(
                "" if late is None else placements.weight_table[late].name, now, count))
        starts += [index] * (now + 1 - len(starts))
        now += isinstance(step, HostCall)
    starts += [len(work.steps)] * (count - len(starts))
    return tuple(zip(starts, (*starts[1:], len(work.steps))))


def _refusal(name: str, now: int, count: int) -> str:
    what = (f"{name} is read in submission {now} of {count}" if name
            else f"the host has work behind the last of {count} submissions")
    return (f"{what} at these sizes, when another weight may have its place: it cannot be "
            "streamed. Load the program with a larger memory_budget, and not with "
            "weights='stream', so that it need not be")
