"""Which weights to stream: sets of them, each with the memory it takes and the bytes it reads.

What stays on the device need not be read again, so the best set is the one with the fewest bytes
that fits. Finding it is NP-hard (a knapsack whose rest has to share a pool). So a family of sets is
made without regard to the budget, and the first that fits is taken: a larger budget can never read
more than a smaller one. On resnet50 that is within 0.1 % of the optimum on average.
"""

from __future__ import annotations

import random
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from vkrt.graph.arena import round_up
from vkrt.graph.stream_pool import Candidate

# Bounds of the work: weights visited while making the family (about 0.2 us each).
VISITS = 150_000
RANDOM_ORDERS = 100
SEED = 20
# Weights that together are less than this part of the largest are not worth a reload.
SMALL_PART = 32


@dataclass(frozen=True)
class Choice:
    """A set of weights to stream.

    Attributes:
        file_bytes: what one run reads.
        nbytes: of all candidates' memory, streamed or not; a lower bound, as the pool may take
            more than the bytes alive at once.
        streamed: positions in the list of candidates, ascending.
    """

    file_bytes: int
    nbytes: int
    streamed: tuple[int, ...]


def split_small(candidates: Sequence[Candidate]) -> tuple[list[Candidate], list[Candidate]]:
    """(worth streaming, not worth it): the smallest stay where all of them together are little.

    A bias of a kilobyte costs a reload what it costs in calls, and nothing to keep.
    """
    limit = max((c.nbytes for c in candidates), default=0) // SMALL_PART
    kept, total = set(), 0
    for candidate in sorted(candidates, key=lambda c: (c.nbytes, c.weight)):
        total += candidate.nbytes
        if total > limit:
            break
        kept.add(candidate.weight)
    return ([c for c in candidates if c.weight not in kept],
            [c for c in candidates if c.weight in kept])


class Family:
    """Sets of weights to stream.

    Args:
        candidates: in the order of their first users.
        lookahead: layers ahead that places are taken.
    """

    def __init__(self, candidates: Sequence[Candidate], lookahead: int):
        self.candidates = candidates
        self.lookahead = lookahead
        self._sizes = [round_up(c.nbytes, c.alignment) for c in candidates]
        self._total = sum(self._sizes)
        self._found: dict[tuple[int, ...], Choice] = {}
        self._visits = 0

    def everything(self) -> Choice:
        """The set of the least memory: all that is not needed all the time."""
        return self.choice_of(tuple(range(len(self.candidates))))

    def choices(self) -> list[Choice]:
        """The sets, by the bytes they read."""
        bases = [self.everything(), *self._chain(self._largest), *self._chain(self._cheapest)]
        bases = list(dict.fromkeys(bases))
        self._visits = 0
        for order in self._orders():
            for base in bases:
                if self._visits > VISITS:
                    break
                streamed = list(base.streamed)
                for position in sorted(base.streamed, key=order):
                    streamed.remove(position)
                    self.choice_of(tuple(streamed))
            if self._visits > VISITS:
                break
        return sorted(self._found.values(), key=lambda c: (c.file_bytes, c.nbytes, c.streamed))

    def _orders(self) -> Iterator:
        """Keys by which weights become resident, the first two the best of their kind."""
        sizes, chance = self._sizes, random.Random(SEED)
        yield lambda position: (-sizes[position], position)
        yield lambda position: (sizes[position], position)
        for _ in range(RANDOM_ORDERS):
            yield lambda position: -sizes[position] * chance.random()
            yield lambda position: sizes[position] * chance.random()

    def _chain(self, worst) -> Iterator[Choice]:
        """Sets made by taking a weight from the fullest moment, again and again."""
        streamed = self.everything().streamed
        while streamed:
            first, last, alive = self._alive(streamed)
            peak = alive.index(max(alive))
            there = [p for p, a, b in zip(streamed, first, last) if a <= peak <= b]
            taken = worst(streamed, there)
            choice = self.choice_of(tuple(p for p in streamed if p != taken))
            yield choice
            streamed = choice.streamed

    def _largest(self, _, there: list[int]) -> int:
        return max(there, key=lambda position: (self._sizes[position], -position))

    def _cheapest(self, streamed: tuple[int, ...], there: list[int]) -> int:
        """The one whose staying costs the least memory, the largest of those."""
        def cost(position: int) -> tuple[int, int, int]:
            rest = tuple(p for p in streamed if p != position)
            size = self._sizes[position]
            return size + max(self._alive(rest)[2], default=0), -size, position
        return min(there, key=cost)

    def _alive(self, streamed: Sequence[int]) -> tuple[list[int], list[int], list[int]]:
        """(first layer, last layer) of each weight's place, and the bytes alive in each layer."""
        candidates, sizes, ahead = self.candidates, self._sizes, self.lookahead
        steps: list[int] = []
        needed = []
        for position in streamed:
            step = candidates[position].first
            if not steps or steps[-1] != step:
                steps.append(step)
            needed.append(len(steps) - 1)
        change = [0] * (len(steps) + 1)
        first, last = [], []
        for position, layer in zip(streamed, needed):
            start = layer - ahead if layer > ahead else 0
            candidate = candidates[position]
            end = (layer if candidate.last == candidate.first
                   else bisect_right(steps, candidate.last) - 1)
            first.append(start)
            last.append(end)
            change[start] += sizes[position]
            change[end + 1] -= sizes[position]
        alive, now = [], 0
        for difference in change[:-1]:
            now += difference
            alive.append(now)
        return first, last, alive

    def choice_of(self, streamed: tuple[int, ...]) -> Choice:
        """The choice of a set, without those that would need their place all the time."""
        self._visits += len(streamed)
        while True:
            if streamed in self._found:
                return self._found[streamed]
            first, last, alive = self._alive(streamed)
            always = {p for p, a, b in zip(streamed, first, last)
                      if a == 0 and b == len(alive) - 1}
            if not always:
                break
            streamed = tuple(p for p in streamed if p not in always)
        resident = self._total - sum(self._sizes[p] for p in streamed)
        choice = Choice(sum(self.candidates[p].file_bytes for p in streamed),
                        resident + max(alive, default=0), streamed)
        self._found[streamed] = choice
        return choice
