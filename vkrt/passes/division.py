"""One way to divide a run of nodes, with its memory and its time."""

from __future__ import annotations

from dataclasses import dataclass

from vkrt.graph.graph import Graph, Node
from vkrt.ops.flops import multiply_adds
from vkrt.passes.liveness import Liveness, padded_bytes
from vkrt.passes.slices import Chain
from vkrt.passes.strip_region import Region
from vkrt.work.speed import Speed


@dataclass(frozen=True)
class DivisionCandidate:
    """A run of nodes in strips or in slices."""

    run: Region | Chain
    nbytes: int  # the most bytes that are alive at one of the nodes
    seconds: float  # the expected time of the nodes


def bytes_around(run: Region | Chain, graph: Graph, live: Liveness) -> int:
    """Bytes that are alive while a run is done in parts, without those of a part: the tensors alive
    before the run, its results, and the results of nodes in it that are done as a whole."""
    return live.around(run.start, run.results) + sum(
        live.own_bytes(graph.nodes[index]) for index in range(run.start, run.end)
        if index not in run.nodes)


def node_seconds(node: Node, speed: Speed) -> float:
    """The expected time of a node that is done as a whole."""
    moved = sum(map(padded_bytes, (*node.tensors(), *node.outs)))
    return max(speed.dispatch + moved / speed.bytes,
               (multiply_adds(node) or 0) / speed.multiply_adds)
