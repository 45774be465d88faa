"""Nodes that are done in parts, so that what is between them takes less memory: in slices of hidden
channels (`vkrt.passes.slices`), and in strips of rows (`vkrt.passes.strips`).

Which runs of nodes, and in how many parts: `vkrt.passes.division_plan` finds the smallest number of
bytes that every node can do with, by the sizes of tensors alone. Lowering compares the arenas with
and without parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from vkrt.graph.graph import Graph, Node
from vkrt.passes.division_plan import MORE_TIME, plan_divisions
from vkrt.passes.rewrite import Pass, are_right
from vkrt.passes.slices import Chain, in_counts, in_slices
from vkrt.passes.strip_region import Region
from vkrt.passes.strips import in_strips
from vkrt.work.target import Target


def divide_activations(graph: Graph, target: Target) -> Graph:
    """Runs of nodes are done in slices or in strips, unless the user prefers speed to memory."""
    # Of a damaged program nothing is known, and lowering says what is wrong.
    if not may_divide(graph, target) or not are_right(graph, graph.nodes):
        return graph
    return divided(graph, plan_divisions(graph, target) if target.slices is None
                   else in_counts(graph, dict(target.slices)), target.rereads)


DIVIDE_ACTIVATIONS = Pass("divide_activations", "nodes in slices of hidden channels and in strips "
                          "of rows, which take less memory", divide_activations)


def may_divide(graph: Graph, target: Target) -> bool:
    """Whether some nodes may be done in parts."""
    return (target.prefer in MORE_TIME and DIVIDE_ACTIVATIONS.name not in target.skipped
            and not any(node.guard for node in graph.nodes))


def undivided(target: Target) -> Target:
    """The same target, with all nodes whole."""
    return replace(target, skipped=target.skipped | {DIVIDE_ACTIVATIONS.name})


def divided(graph: Graph, runs: Sequence[Region | Chain], rereads: bool = False) -> Graph:
    """The graph with these runs of nodes in parts; the same object where there is none.

    Args:
        rereads: as `Target.rereads`.
    """
    starts = {run.start: run for run in runs}
    if not starts:
        return graph
    nodes: list[tuple[int, Node]] = []
    index = 0
    while index < len(graph.nodes):
        run = starts.get(index)
        if run is None:
            nodes.append((graph.number_of(index), graph.nodes[index]))
            index += 1
        else:
            nodes += (in_slices(graph, run) if isinstance(run, Chain) else
                      in_strips(graph, run, rereads))
            index = run.end
    return graph.reordered(nodes)
