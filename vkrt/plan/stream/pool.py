"""The pool: where the streamed weights lie, and from when to when each place is theirs.

Times are sections, see `vkrt.plan.stream.records`. For placing, the circle of time is cut at the
start of a run: what is reloaded first may not start before it. Lifetimes are intervals then, and
the arena's packing serves. Behind the cut the places are taken as early as they are free, so that a
reload crosses into the run before wherever nothing stands in its way. Placing the whole circle
at once would cost more: an odd number of equal weights cannot take turns in two places, only all
but one of them can.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from vkrt.plan.arena import Request, pack
from vkrt.plan.stream.records import Release, Reload, Section, Wait
from vkrt.work.tensor import round_up


@dataclass(frozen=True)
class Candidate:
    """A weight that may be streamed.

    Attributes:
        weight: index in the catalog.
        nbytes, alignment: of its storage.
        file_bytes: what a reload reads.
        first, last: the first and the last step that reads it.
    """

    weight: int
    nbytes: int
    alignment: int
    file_bytes: int
    first: int
    last: int


@dataclass(frozen=True)
class Tenancy:
    """A weight in its place.

    Attributes:
        weight: index in the catalog.
        offset, end: bytes of the pool.
        start: the section from whose start on the place is its own; negative in the run before,
            where section s of it is s minus the number of sections.
        needed: the section that waits for it.
        last: the section of its last user, after which the place is free.
    """

    weight: int
    offset: int
    end: int
    start: int
    needed: int
    last: int


@dataclass(frozen=True)
class Arrangement:
    """All streamed weights in their places.

    Attributes:
        sections: the steps, cut.
        tenancies: in the order of the waits.
        pool_bytes: to the end of the last place.
        alignment: the largest of the weights'.
        lookahead: wait points that reloads start ahead, cut to what their number allows.
        late: how many of them start later, because their place is taken until then.
    """

    sections: tuple[Section, ...]
    tenancies: tuple[Tenancy, ...]
    pool_bytes: int
    alignment: int
    lookahead: int
    late: int


def cut(streamed: Sequence[Candidate], steps: int, host_calls: Collection[int]
        ) -> tuple[Section, ...]:
    """The sections: one starts where streamed weights are first used, and behind a host call."""
    waits: dict[int, list[int]] = {}
    for candidate in streamed:
        waits.setdefault(candidate.first, []).append(candidate.weight)
    starts = sorted({0, *waits, *(call + 1 for call in host_calls)} - {steps})
    return tuple(Section(first, end, tuple(sorted(waits.get(first, ()))))
                 for first, end in zip(starts, (*starts[1:], steps)))


def arrange(streamed: Sequence[Candidate], steps: int, host_calls: Collection[int],
            lookahead: int, reach: int) -> Arrangement:
    """Places the weights.

    Args:
        streamed: the weights to stream, in any order.
        steps: number of steps.
        host_calls: the steps that end a section.
        lookahead: how many wait points ahead every place is taken, except right behind the cut.
        reach: how many wait points ahead it may be taken where that needs no more bytes.
    """
    sections = cut(streamed, steps, host_calls)
    first_steps = [section.first for section in sections]
    streamed = sorted(streamed, key=lambda c: (c.first, c.weight))
    wait_points = [i for i, section in enumerate(sections) if section.waits]
    lookahead = min(lookahead, max(len(wait_points) - 1, 0))
    tenancies = []
    for candidate in streamed:
        needed = bisect_right(first_steps, candidate.first) - 1
        last = bisect_right(first_steps, candidate.last) - 1
        point = bisect_right(wait_points, needed) - 1 - lookahead
        tenancies.append(Tenancy(candidate.weight, 0, candidate.nbytes,
                                 wait_points[point] if point >= 0 else 0, needed, last))
    packing = pack([Request(c.nbytes, c.alignment, t.start, t.last)
                    for c, t in zip(streamed, tenancies)])
    circle = _Circle(len(sections), wait_points,
                     [c.alignment for c in streamed], packing.nbytes,
                     [_moved(t, offset, t.start) for t, offset in zip(tenancies, packing.offsets)])
    # What is promised to every reload comes before what is nice to have for some.
    circle.bring_forward(lookahead)
    circle.bring_forward(max(reach, lookahead))
    late = sum(t.start > circle.ahead(t, lookahead) for t in circle.tenancies)
    return Arrangement(sections, tuple(circle.tenancies), packing.nbytes,
                       max((c.alignment for c in streamed), default=1), lookahead, late)


def _moved(tenancy: Tenancy, offset: int, start: int) -> Tenancy:
    return Tenancy(tenancy.weight, offset, offset + tenancy.end - tenancy.offset, start,
                   tenancy.needed, tenancy.last)


class _Circle:
    """Tenancies over cyclic time; no two overlap in both time and bytes."""

    def __init__(self, count: int, wait_points: list[int], alignments: list[int], pool_bytes: int,
                 tenancies: list[Tenancy]):
        self.count = count
        self.wait_points = wait_points
        self.alignments = alignments
        self.pool_bytes = pool_bytes
        self.tenancies = tenancies

    def ahead(self, tenancy: Tenancy, count: int) -> int:
        """The section so many wait points before the one that waits, negative in the run before."""
        turns, point = divmod(bisect_right(self.wait_points, tenancy.needed) - 1 - count,
                              len(self.wait_points))
        return turns * self.count + self.wait_points[point]

    def bring_forward(self, reach: int) -> None:
        """Starts every tenancy as early as its place is free, at most `reach` wait points ahead.

        Starts stay in the order of the waits, so each is bounded by its predecessor's. The first
        one's predecessor is the last of the run before, which may move itself: hence twice.
        """
        if not reach:
            return
        for number in (*range(len(self.tenancies)), *range(len(self.tenancies))):
            mine = self.tenancies[number]
            before = self.tenancies[number - 1].start - (0 if number else self.count)
            goal = max(self.ahead(mine, reach), before, mine.last + 1 - self.count)
            if goal >= mine.start:
                continue
            start = max(goal, self._free_from(number))
            offset = mine.offset
            if start > goal:
                found = self._other_place(number, goal)
                if found is not None:
                    offset, start = found, goal
                elif self._made_room(number, goal):
                    start = goal
            self.tenancies[number] = _moved(mine, offset, start)

    def _free_from(self, number: int) -> int:
        """The first section at which nobody else needs any byte of a tenancy's place."""
        mine = self.tenancies[number]
        return max((other.last + 1 - (0 if other.last < mine.needed else self.count)
                    for index, other in enumerate(self.tenancies)
                    if index != number and other.offset < mine.end and mine.offset < other.end),
                   default=mine.needed + 1 - self.count)

    def _other_place(self, number: int, start: int) -> int | None:
        """The lowest place in the pool that a tenancy can have from another start on."""
        mine = self.tenancies[number]
        nbytes, alignment = mine.end - mine.offset, self.alignments[number]
        offset = 0
        for other in sorted((o for i, o in enumerate(self.tenancies) if i != number
                             and self._meet(o, start, mine.last)), key=lambda o: o.offset):
            if offset + nbytes <= other.offset:
                break
            offset = max(offset, round_up(other.end, alignment))
        return offset if offset + nbytes <= self.pool_bytes else None

    def _made_room(self, number: int, start: int) -> bool:
        """Moves what is in the way of an earlier start to other places, if all of it can."""
        mine = self.tenancies[number]
        before = list(self.tenancies)
        # As if it were there already, so that nothing moves into its place.
        self.tenancies[number] = _moved(mine, mine.offset, start)
        for index, other in enumerate(before):
            if (index == number or not self._meet(other, start, mine.last)
                    or other.end <= mine.offset or mine.end <= other.offset):
                continue
            offset = self._other_place(index, other.start)
            if offset is None:
                self.tenancies = before
                return False
            self.tenancies[index] = _moved(other, offset, other.start)
        return True

    def _meet(self, other: Tenancy, start: int, last: int) -> bool:
        """Whether a tenancy of this or the runs beside it has a section in start .. last."""
        return any(other.start + turn <= last and start <= other.last + turn
                   for turn in (-self.count, 0, self.count))


def records_of(arrangement: Arrangement) -> Iterator[Reload | Wait | Release]:
    """Everything that happens in a run, in order, see `StreamPlan.records`."""
    count = len(arrangement.sections)
    reloads: dict[int, list[Reload]] = {}
    releases: dict[int, list[Release]] = {}
    # Without look-ahead nothing may be transferred before the run that needs it has begun.
    overlaps = arrangement.lookahead > 0
    for tenancy in arrangement.tenancies:
        ahead = int(tenancy.start <= 0 and overlaps)
        after = tenancy.start - 1 + ahead * count
        reloads.setdefault(after, []).append(Reload(tenancy.weight, ahead, after))
        releases.setdefault(tenancy.last, []).append(Release(tenancy.weight, tenancy.last))
    yield from reloads.get(-1, ())
    for number, section in enumerate(arrangement.sections):
        yield from (Wait(weight, number) for weight in section.waits)
        yield from releases.get(number, ())
        # Those of this run before those of the next: the order of the waits.
        yield from sorted(reloads.get(number, ()), key=lambda reload: reload.ahead)
