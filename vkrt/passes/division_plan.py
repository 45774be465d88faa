"""Which runs of nodes are done in parts: those that give the smallest arena by sizes of tensors, or
the smallest one in about the same time.

A run is a `Region` in strips of rows, a `Chain` in slices of hidden channels, or a `RecomputedRun`.
Bytes are those of tensors as kernels pad them, and times are estimates from a driver's figures.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Collection, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from vkrt.graph.graph import Graph
from vkrt.passes.division import DivisionCandidate, node_seconds
from vkrt.passes.liveness import Liveness, padded_bytes
from vkrt.passes.recompute import RecomputedGraph, RecomputedRun, recomputed
from vkrt.passes.slice_candidates import slice_candidates
from vkrt.passes.slices import Chain
from vkrt.passes.strip_candidates import SLACK, StripCandidates
from vkrt.passes.strip_region import Region
from vkrt.work.target import Target

# How much longer a method may take in parts, by what a load prefers
MORE_TIME = {"memory": math.inf, "balanced": 0.08}
# More bytes than any device has
IMPOSSIBLE = 1 << 60

Run = Region | Chain | RecomputedRun
# A place before a node: its index in the graph where nodes are done twice, if there is one, and
# whether only that graph has it: between nodes that are done twice, other tensors are alive.
Place = tuple[int, bool]


class Step(NamedTuple):
    """One or several nodes that lead from one place to another."""

    # The places before the first node, and behind the last one
    start: Place
    end: Place
    # The same as indices of the nodes' graph
    first: int
    last: int
    nbytes: int  # the most bytes that are alive at one of them
    seconds: float  # the expected time of the nodes
    run: Region | Chain | None  # how they are divided; None for a node that is done as a whole
    is_recomputed: bool  # whether the nodes' graph is the one in which nodes are done twice


def plan_divisions(graph: Graph, target: Target, strips: bool = True, slices: bool = True
                   ) -> list[Run]:
    """The fastest runs with about the lowest peak of bytes alive at a node (`SLACK`), in their
    order. No two runs share a node. Empty where the peak does not become lower. In graphs with
    dynamic sizes nothing is done twice.

    Args:
        strips, slices: which kinds of runs there may be.
    """
    twice = recomputed(graph) if strips and not graph.is_dynamic else RecomputedGraph(graph, ())
    ways = _Ways(graph, target, twice)
    if slices:
        ways.add(slice_candidates(graph, ways.live, target, ways.seconds))
    most = max(ways.live.at_node, default=0)
    least, ceiling = most, max(ways.sizes, default=0)
    while ceiling:
        # Runs with fewer bytes alive matter only if those with more can do with less.
        if strips:
            ways.add_strips(ceiling // 2, ceiling)
        ceiling = max((nbytes for nbytes in ways.sizes if nbytes <= ceiling // 2), default=0)
        sizes = sorted({step.nbytes for steps in ways.ends.values() for step in steps})
        least = sizes[bisect_left(sizes, True,
                                  key=lambda nbytes: ways.cheapest(nbytes) is not None)]
        if least > ceiling:
            break
    if least >= most:
        return []
    return list(_runs(ways.cheapest(int(least * (1 + SLACK))) or [], twice))


class _Ways:
    """The steps in which the nodes of a graph can be done.

    Attributes:
        ends: the steps, by the place where they end.
        live: of the graph.
        seconds: that each node takes as a whole.
        sizes: the bytes that are alive at nodes that are done as a whole.
    """

    def __init__(self, graph: Graph, target: Target, twice: RecomputedGraph):
        self._twice = twice
        self.ends: dict[Place, list[Step]] = {}
        self.live, self.seconds = _whole(graph, target)
        total = sum(self.seconds)
        more = total * MORE_TIME[target.prefer]
        # The factor allows for rounding: sums of steps have another order.
        self._limit = (total + more) * (1 + 1e-9)
        self._strips = [(StripCandidates(graph, self.live, target, self.seconds, more), False)]
        self._add_whole(self.live, self.seconds, False)
        self.sizes = set(self.live.at_node)
        if twice.again:
            live, seconds = _whole(twice.graph, target, twice.again)
            self._strips.append((StripCandidates(twice.graph, live, target, seconds, more,
                                                 twice.cuts, twice.recomputes), True))
            self._add_whole(live, seconds, True)
            self.sizes.update(live.at_node)

    def add(self, candidates: Iterator[DivisionCandidate], is_recomputed: bool = False) -> None:
        for candidate in candidates:
            run = candidate.run
            self._add(run.start, run.end, candidate.nbytes, candidate.seconds, run, is_recomputed)

    def add_strips(self, floor: int, ceiling: int) -> None:
        for candidates, is_recomputed in self._strips:
            self.add(candidates.between(floor, ceiling), is_recomputed)

    def _add_whole(self, live: Liveness, seconds: Sequence[float], is_recomputed: bool) -> None:
        """Adds the nodes of a graph as a whole; nodes that both graphs have only once."""
        for index, nbytes in enumerate(live.at_node):
            if not is_recomputed or self._twice.recomputes(index, index + 1):
                self._add(index, index + 1, nbytes, seconds[index], None, is_recomputed)

    def _add(self, first: int, last: int, nbytes: int, seconds: float,
             run: Region | Chain | None, is_recomputed: bool) -> None:
        start, end = self._place(first, is_recomputed), self._place(last, is_recomputed)
        self.ends.setdefault(end, []).append(
            Step(start, end, first, last, nbytes, seconds, run, is_recomputed))

    def _place(self, index: int, is_recomputed: bool) -> Place:
        place = index if is_recomputed else self._twice.places[index]
        return place, is_recomputed and place in self._twice.inside

    def cheapest(self, most: int) -> list[Step] | None:
        """The fastest steps with at most `most` bytes alive at each node; None where there are
        none, or where they take longer than the target allows."""
        best: dict[Place, tuple[float, Step | None]] = {(0, False): (0.0, None)}
        for end in sorted(self.ends):
            found: tuple[float, Step | None] = math.inf, None
            for step in self.ends[end]:
                time = best[step.start][0] + step.seconds
                if step.nbytes <= most and time < found[0]:
                    found = time, step
            best[end] = found
        place = self._twice.places[-1], False
        if best[place][0] > self._limit or best[place][0] == math.inf:
            return None
        steps: list[Step] = []
        last = best[place][1]
        while last is not None:
            steps.append(last)
            last = best[last.start][1]
        return steps[::-1]


def _whole(graph: Graph, target: Target, again: Collection[int] = ()
           ) -> tuple[Liveness, list[float]]:
    """The liveness of a graph, and the seconds that each of its nodes takes as a whole."""
    live = Liveness(graph, again)
    for index, node in enumerate(graph.nodes):
        seen = (*node.outs, *(t for t in node.tensors() if t.constant is None))
        if max(map(padded_bytes, seen)) > target.max_buffer_range:
            live.at_node[index] += IMPOSSIBLE
    return live, [node_seconds(node, target.speed) for node in graph.nodes]


def _runs(steps: Sequence[Step], twice: RecomputedGraph) -> Iterator[Run]:
    for is_recomputed, group in groupby(steps, lambda step: step.is_recomputed):
        some = list(group)
        runs = [step.run for step in some if step.run is not None]
        if is_recomputed:
            first, last = some[0].first, some[-1].last
            yield RecomputedRun(twice.places.index(first), twice.places.index(last), twice.graph,
                                first, last, runs)
        else:
            yield from runs
