"""Which runs of nodes are done in parts: the smallest arena by sizes of tensors, or the smallest in
about the same time.

A run is a `Region`, in strips of rows, or a `Chain`, in slices of hidden channels. Bytes are those
of tensors as kernels pad them, and times are estimates by a driver's figures; what a kernel takes
besides is not counted.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence

from vkrt.graph.graph import Graph
from vkrt.passes.division import Choice, node_seconds
from vkrt.passes.liveness import Liveness, padded_bytes
from vkrt.passes.slice_choices import slice_choices
from vkrt.passes.slices import Chain
from vkrt.passes.strip_choices import SLACK, StripChoices
from vkrt.passes.strip_region import Region
from vkrt.work.target import Target

# How much longer a method may take in parts, by what a load prefers
MORE_TIME = {"memory": math.inf, "balanced": 0.08}
# More bytes than any device has
IMPOSSIBLE = 1 << 60


def plan_divisions(graph: Graph, target: Target, strips: bool = True, slices: bool = True
                   ) -> list[Region | Chain]:
    """The runs with which the most bytes that are alive at a node are fewest, in their order; no
    two have a node in common. Empty where nothing becomes less.

    Graphs with dynamic sizes have slices alone: the hidden channels are as many at all sizes.

    Args:
        strips, slices: which kinds of runs there may be.
    """
    live = Liveness(graph)
    for index, node in enumerate(graph.nodes):
        if max(map(padded_bytes, node.outs)) > target.max_buffer_range:
            live.at_node[index] += IMPOSSIBLE
    seconds = [node_seconds(node, target.speed) for node in graph.nodes]
    more = sum(seconds) * MORE_TIME[target.prefer]
    most = ceiling = max(live.at_node, default=0)
    choices: dict[int, list[Choice]] = {}
    strips = strips and not graph.is_dynamic
    regions = StripChoices(graph, live, target, seconds, more)
    if slices:
        for choice in slice_choices(graph, live, target, seconds):
            choices.setdefault(choice.run.end, []).append(choice)

    def found(nbytes: int) -> list[Region | Chain] | None:
        return _cheapest(live.at_node, seconds, choices, nbytes, sum(seconds) + more)

    least = most
    while ceiling:
        # Runs at whose nodes less is alive matter when the others can do with less.
        if strips:
            for choice in regions.between(ceiling // 2, ceiling):
                choices.setdefault(choice.run.end, []).append(choice)
        ceiling = max((nbytes for nbytes in live.at_node if nbytes <= ceiling // 2), default=0)
        sizes = sorted({*live.at_node, *(c.nbytes for ends in choices.values() for c in ends)})
        least = sizes[bisect_left(sizes, True, key=lambda nbytes: found(nbytes) is not None)]
        if least >= ceiling:
            break
    return (found(int(least * (1 + SLACK))) or []) if least < most else []


def _cheapest(at_node: Sequence[int], seconds: Sequence[float],
              choices: Mapping[int, Sequence[Choice]], most: int, limit: float
              ) -> list[Region | Chain] | None:
    """The runs of the least time with which at no node more than `most` bytes are alive; None where
    that cannot be, or takes longer than `limit` seconds.

    Args:
        seconds: that each node takes as a whole.
    """
    best: list[tuple[float, Choice | None]] = [(0.0, None)]
    for end, nbytes in enumerate(at_node, 1):
        found: tuple[float, Choice | None] = (
            best[end - 1][0] + seconds[end - 1] if nbytes <= most else math.inf, None)
        for choice in choices.get(end, ()):
            time = best[choice.run.start][0] + choice.seconds
            if choice.nbytes <= most and time < found[0]:
                found = time, choice
        best.append(found)
    # Sums in another order
    if best[-1][0] > limit * (1 + 1e-9) or best[-1][0] == math.inf:
        return None
    runs: list[Region | Chain] = []
    place = len(at_node)
    while place:
        last = best[place][1]
        if last is not None:
            runs.append(last.run)
        place = last.run.start if last is not None else place - 1
    return runs[::-1]
