"""Strided views that are better copied: left in place, they would make the arena larger.

Queries and keys that are left in one layer's result, which also has the values, are alive until the
values are read, beside the scores. Copies of them are not.
"""

from __future__ import annotations

from collections.abc import Collection

from vkrt.graph.graph import Graph
from vkrt.plan.scratch import alive
from vkrt.work.command_list import CommandList
from vkrt.work.tensor import Tensor


def costly_parts(graph: Graph, work: CommandList, left: Collection[int]) -> set[int]:
    """The views left in place by a command list that may be why its arena is so large.

    Args:
        graph: as passes have rewritten it.
        left: the indices of the nodes of all these views.

    Returns:
        The numbers (`Graph.number_of`) of the views that wait to be read at a node where more bytes
        are alive than at any node where no view waits. None where the arena is as large anyway.
    """
    if not left:
        return set()
    spans = _spans(graph, left)
    waiting = set().union(*spans.values())
    at_time = alive(work)
    # The most bytes where no view waits. The first and the last time belong to no step.
    floor = max(at_time[0], at_time[-1])
    heavy: list[tuple[int, int]] = []
    for step, nbytes in zip(work.steps, at_time[1:]):
        if step.node in waiting:
            heavy.append((nbytes, step.node))
        else:
            floor = max(floor, nbytes)
    nodes = {node for nbytes, node in heavy if nbytes > floor}
    return {index for index, span in spans.items() if not nodes.isdisjoint(span)}


def _spans(graph: Graph, left: Collection[int]) -> dict[int, set[int]]:
    """For each view the nodes from it to the last one that reads it, or a view of it, by number."""
    until: dict[Tensor, int] = {}
    spans: dict[int, set[int]] = {}
    for index in reversed(range(len(graph.nodes))):
        node, last = graph.nodes[index], index
        if index in left:
            last = max(until.get(out, index) for out in node.outs)
            spans[graph.number_of(index)] = set(map(graph.number_of, range(index, last + 1)))
        for tensor in node.reads():
            until[tensor] = max(last, until.get(tensor, -1))
    return spans
