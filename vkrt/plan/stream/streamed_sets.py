"""Which weights to stream: sets of them, each with the memory it takes and the bytes it reads.

The best set is the one with the fewest bytes that fits: a knapsack whose rest has to share a pool,
which is NP-hard. So a family of sets is made without regard to the budget, and the first set that
fits is taken: a larger budget never reads more than a smaller one. On resnet50 this is within 0.2 %
of the optimum on average.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import nlargest
from itertools import accumulate

from vkrt.plan.once import Once
from vkrt.plan.stream.pool import Candidate
from vkrt.work.tensor import round_up

# Bounds of the work: weights visited while making the family (about 0.3 us each).
VISITS = 150_000
VISITS_EACH = 2000  # per candidate: few candidates have few sets worth trying
# The same for a chain of sets. Of more weights than the root of this, several are taken at once.
CHAIN_VISITS = 200_000
RANDOM_ORDERS = 100
SEED = 20
# The smallest weights stay if together they have at most 1 / SMALL_PART of the largest one's bytes.
SMALL_PART = 32


@dataclass(frozen=True)
class StreamedSet:
    """A set of weights to stream."""

    file_bytes: int  # what one run reads
    # Of all candidates' memory, streamed or not; a lower bound, as the pool may take more than the
    # bytes alive at once
    nbytes: int
    streamed: tuple[int, ...]  # positions in the list of candidates, ascending


def split_small(candidates: Sequence[Candidate]) -> tuple[list[Candidate], list[Candidate]]:
    """(worth streaming, not worth it): the smallest weights stay where together they are little. A
    reload of a bias of a kilobyte costs some calls, and keeping the bias costs nothing."""
    limit = max((c.nbytes for c in candidates), default=0) // SMALL_PART
    kept, total = set(), 0
    for candidate in sorted(candidates, key=lambda c: (c.nbytes, c.weight)):
        total += candidate.nbytes
        if total > limit:
            break
        kept.add(candidate.weight)
    return ([c for c in candidates if c.weight not in kept],
            [c for c in candidates if c.weight in kept])


# Inside `with sets_once():`, sets of the same candidates are made once. Plans that are compared
# differ in their budgets, which a family does not depend on.
sets_once: Once[list[StreamedSet]] = Once("sets")


class Family:
    """Sets of weights to stream.

    Args:
        candidates: in the order of their first users.
        lookahead: how many sync points ahead places are taken.
    """

    def __init__(self, candidates: Sequence[Candidate], lookahead: int):
        self.candidates = candidates
        self.lookahead = lookahead
        self._sizes = [round_up(c.nbytes, c.alignment) for c in candidates]
        self._firsts = [c.first for c in candidates]
        self._lasts = [c.last for c in candidates]
        self._total = sum(self._sizes)
        self._found: dict[tuple[int, ...], StreamedSet] = {}
        self._visits = 0

    def everything(self) -> StreamedSet:
        """The set of the least memory: all weights that are not needed all the time."""
        return self.set_of(tuple(range(len(self.candidates))))

    def sets(self) -> list[StreamedSet]:
        """The sets, by the bytes they read."""
        key = tuple(self.candidates), self.lookahead
        made = sets_once.answer(key, lambda: Family(*key)._make())
        self._found.update({streamed_set.streamed: streamed_set for streamed_set in made})
        return sorted(self._found.values(), key=lambda c: (c.file_bytes, c.nbytes, c.streamed))

    def _make(self) -> list[StreamedSet]:
        """Makes the sets of a new family, which no earlier call of `set_of` has added to."""
        count = -(-len(self.everything().streamed) ** 2 // CHAIN_VISITS)
        bases = [self.everything(), *self._chain(self._largest, count)]
        if count == 1:
            # `_cheapest` looks at all weights again for each weight that it compares.
            bases += self._chain(self._cheapest, 1)
        bases = list(dict.fromkeys(bases))
        self._visits, limit = 0, min(VISITS, VISITS_EACH * len(self.candidates))
        for streamed in self._parts_of(bases):
            if self._visits > limit:
                break
            self.set_of(streamed)
        return list(self._found.values())

    def _parts_of(self, bases: Sequence[StreamedSet]) -> Iterator[tuple[int, ...]]:
        """The sets that are left as the weights of each base become resident one by one."""
        for order in self._orders():
            for base in bases:
                streamed = list(base.streamed)
                for position in sorted(base.streamed, key=order):
                    streamed.remove(position)
                    yield tuple(streamed)

    def _orders(self) -> Iterator:
        """Sort keys: orders in which weights become resident, the two best first."""
        import random

        sizes, chance = self._sizes, random.Random(SEED)
        yield lambda position: (-sizes[position], position)
        yield lambda position: (sizes[position], position)
        for _ in range(RANDOM_ORDERS):
            yield lambda position: -sizes[position] * chance.random()
            yield lambda position: sizes[position] * chance.random()

    def _chain(self, in_order, count: int) -> Iterator[StreamedSet]:
        """Sets made by taking the first `count` weights, by `in_order`, from the `count` fullest
        moments, again and again."""
        streamed = self.everything().streamed
        while streamed:
            first, last, alive = self._alive(streamed)
            full = sorted(nlargest(count, range(len(alive)), key=alive.__getitem__))
            there = [p for p, a, b in zip(streamed, first, last)
                     if bisect_left(full, a) < bisect_right(full, b)]
            taken = {*in_order(streamed, there)[:count]}
            streamed_set = self.set_of(tuple(p for p in streamed if p not in taken))
            yield streamed_set
            streamed = streamed_set.streamed

    def _largest(self, _, there: list[int]) -> list[int]:
        return sorted(there, key=lambda position: (-self._sizes[position], position))

    def _cheapest(self, streamed: tuple[int, ...], there: list[int]) -> list[int]:
        """First the weights whose staying costs the least memory, the largest among equals."""
        def cost(position: int) -> tuple[int, int, int]:
            rest = tuple(p for p in streamed if p != position)
            size = self._sizes[position]
            return size + max(self._alive(rest)[2], default=0), -size, position
        return sorted(there, key=cost)

    def _alive(self, streamed: Sequence[int]) -> tuple[list[int], list[int], list[int]]:
        """(first, last) sync point of each weight's place, and the bytes alive at each."""
        ahead, sizes, firsts, lasts = self.lookahead, self._sizes, self._firsts, self._lasts
        points: list[int] = []  # the steps at which they start
        change = [0]
        first, last = [], []
        point = step = -1
        for position in streamed:
            if firsts[position] != step:
                step = firsts[position]
                point += 1
                points.append(step)
                change.append(0)
            start = point - ahead if point > ahead else 0
            first.append(start)
            last.append(point)
            change[start] += sizes[position]
            change[point + 1] -= sizes[position]
        for number, position in enumerate(streamed):
            if lasts[position] > firsts[position]:
                end = bisect_right(points, lasts[position]) - 1
                change[last[number] + 1] += sizes[position]
                change[end + 1] -= sizes[position]
                last[number] = end
        return first, last, list(accumulate(change[:-1]))

    def set_of(self, streamed: tuple[int, ...]) -> StreamedSet:
        """The set of some candidates, without those that would need their place all the time."""
        self._visits += len(streamed)
        while True:
            if streamed in self._found:
                return self._found[streamed]
            first, last, alive = self._alive(streamed)
            end = len(alive) - 1
            always = {streamed[number] for number in range(bisect_right(first, 0))
                      if last[number] == end}
            if not always:
                break
            streamed = tuple(p for p in streamed if p not in always)
        sizes, candidates = self._sizes, self.candidates
        found = self._found[streamed] = StreamedSet(
            sum([candidates[p].file_bytes for p in streamed]),
            self._total - sum([sizes[p] for p in streamed]) + max(alive, default=0), streamed)
        return found
