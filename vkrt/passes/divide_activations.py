"""Nodes in parts, so that the tensors between them take less memory: in slices of hidden channels
(`vkrt.passes.slices`) and in strips of rows (`vkrt.passes.strips`), for which some nodes are done
twice (`vkrt.passes.recompute`). Lowering compares the arenas with and without parts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from vkrt.graph.graph import Graph, Node
from vkrt.passes.division_plan import MORE_TIME, Run, plan_divisions
from vkrt.passes.recompute import RecomputedRun
from vkrt.passes.rewrite import Pass, are_right
from vkrt.passes.slices import Chain, chains_at, in_slices
from vkrt.passes.strip_candidates import regions_at
from vkrt.passes.strips import in_strips
from vkrt.plan.once import Once
from vkrt.work.target import Target

# Inside `with divisions_once():`, runs of nodes of the same graph are searched for once.
divisions_once: Once[tuple[Graph, list[Run]]] = Once("divisions")


def divide_activations(graph: Graph, target: Target) -> Graph:
    """Runs of nodes are done in slices or in strips, unless the user prefers speed to memory."""
    # Nothing is known of a damaged program, and lowering reports what is wrong.
    if not may_divide(graph, target) or not are_right(graph, graph.nodes):
        return graph
    if target.parts is None:
        # The graph is kept with the answer: its id stays its own.
        key = id(graph), replace(target, rereads=False, max_weight=0)
        _, runs = divisions_once.answer(key, lambda: (graph, plan_divisions(graph, target)))
    else:
        runs = [*chains_at(graph, target.parts), *regions_at(graph, target.parts)]
    return divided(graph, runs, target.rereads)


DIVIDE_ACTIVATIONS = Pass("divide_activations", "nodes in slices of hidden channels and in strips "
                          "of rows, which take less memory", divide_activations)


def may_divide(graph: Graph, target: Target) -> bool:
    """Whether some nodes may be done in parts."""
    return (target.prefer in MORE_TIME and DIVIDE_ACTIVATIONS.name not in target.skipped
            and not any(node.predicate for node in graph.nodes))


def undivided(target: Target) -> Target:
    """The same target, with all nodes whole."""
    return replace(target, skipped=target.skipped | {DIVIDE_ACTIVATIONS.name})


def divided(graph: Graph, runs: Sequence[Run], rereads: bool = False) -> Graph:
    """The graph with these runs of nodes in parts; `rereads` is as in `Target`."""
    if not runs:
        return graph
    parts = tuple(run.parts(graph) for run in runs if not isinstance(run, RecomputedRun))
    return replace(graph.reordered(_in_parts(graph, runs, rereads)), parts=parts)


def _in_parts(graph: Graph, runs: Sequence[Run], rereads: bool, start: int = 0,
              end: int | None = None) -> Iterator[tuple[int, Node]]:
    """The nodes from `start` to `end` with their numbers, some runs of them in parts."""
    starts = {run.start: run for run in runs}
    index, end = start, len(graph.nodes) if end is None else end
    while index < end:
        run = starts.get(index)
        if run is None:
            yield graph.number_of(index), graph.nodes[index]
            index += 1
            continue
        if isinstance(run, RecomputedRun):
            yield from _in_parts(run.graph, run.runs, rereads, run.first, run.last)
        elif isinstance(run, Chain):
            yield from in_slices(graph, run)
        else:
            yield from in_strips(graph, run, rereads)
        index = run.end
