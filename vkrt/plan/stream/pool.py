"""The pool: where each streamed weight lies, and from when to when the place is its own.

Times are submissions, see `vkrt.plan.stream.records`. For placing, cyclic time is cut at the start
of a run, and no reload may cross the cut: lifetimes are intervals then, which the arena's packing
can place. Afterwards each place is taken as early as it is free, so that reloads start in the run
before. Placing in cyclic time at once would cost more: an odd number of equal weights cannot take
turns in two places, only all but one of them can.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from vkrt.plan.arena import Request, pack
from vkrt.plan.stream.records import Release, Reload, Submission, Wait
from vkrt.work.tensor import round_up


@dataclass(frozen=True)
class Candidate:
    """A weight that may be streamed."""

    weight: int  # index in the weight table
    # Of its storage
    nbytes: int
    alignment: int
    file_bytes: int  # what a reload reads
    # The first and the last step that reads it
    first: int
    last: int


@dataclass(frozen=True)
class PoolInterval:
    """A weight's place in the pool, and its time there."""

    weight: int  # index in the weight table
    # Bytes of the pool
    offset: int
    end: int
    # The submission at whose start the place becomes the weight's. Submission s of the run before
    # is s minus the number of submissions, which is negative.
    start: int
    needed: int  # the submission that waits for it
    last: int  # the submission of its last user, after which the place is free


@dataclass(frozen=True)
class Arrangement:
    """All streamed weights in their places."""

    submissions: tuple[Submission, ...]  # the steps, cut into submissions
    intervals: tuple[PoolInterval, ...]  # in the order of the waits
    pool_bytes: int  # to the end of the last place
    alignment: int  # the largest of the weights'
    lookahead: int  # sync points that reloads start ahead, always fewer than there are
    late: int  # how many reloads start later, because their place is taken until then


def cut(streamed: Sequence[Candidate], steps: int, ends: Collection[int]
        ) -> tuple[Submission, ...]:
    """The submissions: one starts where streamed weights are first used, and behind each of `ends`.
    One behind the last step is empty."""
    waits: dict[int, list[int]] = {}
    for candidate in streamed:
        waits.setdefault(candidate.first, []).append(candidate.weight)
    starts = sorted({0, *waits, *(end + 1 for end in ends)}) if steps else []
    return tuple(Submission(first, end, tuple(sorted(waits.get(first, ()))))
                 for first, end in zip(starts, (*starts[1:], steps)))


def arrange(streamed: Sequence[Candidate], steps: int, ends: Collection[int],
            lookahead: int, max_lookahead: int) -> Arrangement:
    """Places the weights.

    Args:
        streamed: the weights to stream, in any order.
        steps: number of steps.
        ends: the steps that end a submission.
        lookahead: how many sync points ahead every place is taken, except right behind the cut.
        max_lookahead: how many sync points ahead it may be taken where that needs no more bytes.
    """
    submissions = cut(streamed, steps, ends)
    first_steps = [submission.first for submission in submissions]
    streamed = sorted(streamed, key=lambda c: (c.first, c.weight))
    sync_points = [i for i, submission in enumerate(submissions) if submission.waits]
    lookahead = min(lookahead, max(len(sync_points) - 1, 0))
    intervals = []
    for candidate in streamed:
        needed = bisect_right(first_steps, candidate.first) - 1
        last = bisect_right(first_steps, candidate.last) - 1
        point = bisect_right(sync_points, needed) - 1 - lookahead
        intervals.append(PoolInterval(candidate.weight, 0, candidate.nbytes,
                                      sync_points[point] if point >= 0 else 0, needed, last))
    packing = pack([Request(c.nbytes, c.alignment, t.start, t.last)
                    for c, t in zip(streamed, intervals)])
    schedule = _CyclicSchedule(
        len(submissions), sync_points, [c.alignment for c in streamed], packing.nbytes,
        [_moved(t, offset, t.start) for t, offset in zip(intervals, packing.offsets)])
    # First the lookahead that every reload gets, then as much more as is free.
    schedule.hoist(lookahead)
    schedule.hoist(max(max_lookahead, lookahead))
    late = sum(t.start > schedule.ahead(t, lookahead) for t in schedule.intervals)
    return Arrangement(submissions, tuple(schedule.intervals), packing.nbytes,
                       max((c.alignment for c in streamed), default=1), lookahead, late)


def _moved(interval: PoolInterval, offset: int, start: int) -> PoolInterval:
    return PoolInterval(interval.weight, offset, offset + interval.end - interval.offset, start,
                        interval.needed, interval.last)


class _CyclicSchedule:
    """Intervals over cyclic time; no two overlap in both time and bytes."""

    def __init__(self, count: int, sync_points: list[int], alignments: list[int], pool_bytes: int,
                 intervals: list[PoolInterval]):
        self.count = count
        self.sync_points = sync_points
        self.alignments = alignments
        self.pool_bytes = pool_bytes
        self.intervals = intervals
        # The numbers of the intervals that have a place at each submission
        self._placed: list[set[int]] = [set() for _ in range(count)]
        for number, interval in enumerate(intervals):
            for submission in self._turn(interval.start, interval.last):
                self._placed[submission].add(number)

    def ahead(self, interval: PoolInterval, count: int) -> int:
        """The submission `count` sync points before the one that waits for a weight; negative in
        the run before."""
        turns, point = divmod(bisect_right(self.sync_points, interval.needed) - 1 - count,
                              len(self.sync_points))
        return turns * self.count + self.sync_points[point]

    def hoist(self, max_lookahead: int) -> None:
        """Starts every interval as early as its place is free, `max_lookahead` sync points ahead at
        most. Starts stay in the order of the waits: each is bounded by the one before it, the first
        by the last one of the run before, which may move, too. Hence twice."""
        if not max_lookahead:
            return
        for number in (*range(len(self.intervals)), *range(len(self.intervals))):
            interval = self.intervals[number]
            before = self.intervals[number - 1].start - (0 if number else self.count)
            goal = max(self.ahead(interval, max_lookahead), before, interval.last + 1 - self.count)
            if goal >= interval.start:
                continue
            start = self._free_from(number, goal)
            offset = interval.offset
            if start > goal:
                found = self._other_place(number, goal)
                if found is not None:
                    offset, start = found, goal
                elif self._made_room(number, goal):
                    start = goal
            self._set(number, _moved(interval, offset, start))

    def _set(self, number: int, interval: PoolInterval) -> None:
        before, self.intervals[number] = self.intervals[number], interval
        for submission in self._turn(before.start, interval.start - 1):
            self._placed[submission].remove(number)
        for submission in self._turn(interval.start, before.start - 1):
            self._placed[submission].add(number)

    def _turn(self, start: int, last: int) -> Iterator[int]:
        """The submissions from one to another, each once, whichever run they are of."""
        return (number % self.count for number in range(start, min(last + 1, start + self.count)))

    def _free_from(self, number: int, goal: int) -> int:
        """The earliest submission, not before `goal`, from which on no other interval needs a byte
        of an interval's place."""
        interval = self.intervals[number]
        for submission in range(interval.start - 1, goal - 1, -1):
            if any(_share_bytes(self.intervals[other], interval)
                   for other in self._placed[submission % self.count] if other != number):
                return submission + 1
        return goal

    def _other_place(self, number: int, start: int) -> int | None:
        """The lowest place in the pool that an interval can have from another start on."""
        interval = self.intervals[number]
        nbytes, alignment = interval.end - interval.offset, self.alignments[number]
        offset = 0
        for other in sorted((self.intervals[other] for other in self._others(
                number, start, interval.last)), key=lambda o: o.offset):
            if offset + nbytes <= other.offset:
                break
            offset = max(offset, round_up(other.end, alignment))
        return offset if offset + nbytes <= self.pool_bytes else None

    def _made_room(self, number: int, start: int) -> bool:
        """Moves intervals that are in the way of an earlier start elsewhere, if all of them can."""
        interval = self.intervals[number]
        # As if it were there already, so that nothing moves into its place.
        self._set(number, _moved(interval, interval.offset, start))
        moved = {number: interval}
        for index in sorted(self._others(number, start, interval.last)):
            other = self.intervals[index]
            if not _share_bytes(other, interval):
                continue
            offset = self._other_place(index, other.start)
            if offset is None:
                for one, before in moved.items():
                    self._set(one, before)
                return False
            moved[index] = other
            self._set(index, _moved(other, offset, other.start))
        return True

    def _others(self, number: int, start: int, last: int) -> set[int]:
        """The other intervals with a place at a submission from `start` to `last`."""
        found: set[int] = set()
        for submission in self._turn(start, last):
            found |= self._placed[submission]
        return found - {number}


def _share_bytes(one: PoolInterval, other: PoolInterval) -> bool:
    return one.offset < other.end and other.offset < one.end


def records_of(arrangement: Arrangement) -> Iterator[Reload | Wait | Release]:
    """Everything that happens in a run, in order, see `StreamPlan.records`."""
    count = len(arrangement.submissions)
    reloads: dict[int, list[Reload]] = {}
    releases: dict[int, list[Release]] = {}
    # Without lookahead nothing may be transferred before the run that needs it has begun.
    overlaps = arrangement.lookahead > 0
    for interval in arrangement.intervals:
        ahead = int(interval.start <= 0 and overlaps)
        after = interval.start - 1 + ahead * count
        reloads.setdefault(after, []).append(Reload(interval.weight, ahead, after))
        releases.setdefault(interval.last, []).append(Release(interval.weight, interval.last))
    yield from reloads.get(-1, ())
    for number, submission in enumerate(arrangement.submissions):
        yield from (Wait(weight, number) for weight in submission.waits)
        yield from releases.get(number, ())
        # Reloads for this run come before those for the next one: the order of the waits.
        yield from sorted(reloads.get(number, ()), key=lambda reload: reload.ahead)
