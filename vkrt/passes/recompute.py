"""Tensors that are made twice, so that they take no memory in between.

In squeeze-and-excite a tensor is multiplied by factors that are made of its means, so all of it is
alive until the factors exist. Instead, the nodes that make it can be done once for the means and
once for the product, both times in strips (`vkrt.passes.strips`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate

from vkrt.graph.graph import Graph, Node, replaced
from vkrt.passes.liveness import padded_bytes
from vkrt.passes.matching import Uses, declared
from vkrt.passes.slices import Chain
from vkrt.passes.strip_region import Region
from vkrt.work.tensor import ITEMSIZE, Tensor

MEAN = "aten.mean.dim"
# The most nodes that are done twice for one tensor
MOST = 8


@dataclass(frozen=True)
class Recomputation:
    """Nodes that can be done twice."""

    nodes: Sequence[int]  # the indices of those that make the tensor, in order
    mean: int  # the index of the node that reads it first
    second: int  # the index of the node that reads it again


@dataclass(frozen=True)
class RecomputedRun:
    """Nodes of a graph, of which some are done twice."""

    # The first node, and the one behind the last, by their indices
    start: int
    end: int
    graph: Graph  # the graph that has these nodes twice
    # `start` and `end` as indices of this graph
    first: int
    last: int
    runs: Sequence[Region | Chain]  # the runs of these nodes that are in parts, in this graph


class RecomputedGraph:
    """A graph in which all nodes that can be done twice are there twice."""

    def __init__(self, graph: Graph, recomputations: Sequence[Recomputation]):
        nodes: list[tuple[int, Node]] = []
        # For each node of the original graph, and for its end, the index here
        self.places: list[int] = []
        self.again: set[int] = set()  # the indices of the repeated nodes
        # For each recomputation the index of its first repeated node, and the index behind its
        # means of rows
        self.cuts: set[int] = set()
        # The indices before which recomputation changes what is alive
        self.inside: set[int] = set()
        means = {each.mean for each in recomputations}
        of_reader = {each.second: each for each in recomputations}
        for index, node in enumerate(graph.nodes):
            number = graph.number_of(index)
            if index in of_reader:
                self.cuts.add(len(nodes))
                again = of_reader[index].nodes
                self.again.update(range(len(nodes), len(nodes) + len(again)))
                others: dict[Tensor, Tensor] = {}
                nodes += ((graph.number_of(each), _again(graph.nodes[each], others))
                          for each in again)
                node = replace(node, args=replaced(node.args, others))
                self.inside.update(range(self.places[again[0]] + 1, len(nodes) + 1))
            self.places.append(len(nodes))
            if index in means:
                rows, node = _by_rows(node)
                nodes.append((number, rows))
                self.cuts.add(len(nodes))
            nodes.append((number, node))
        self.places.append(len(nodes))
        self.graph = graph.reordered(nodes)

    @cached_property
    def _before(self) -> list[int]:
        """For each index, how many indices before it are between nodes that are done twice."""
        return list(accumulate((index in self.inside for index in range(self.places[-1] + 1)),
                               initial=0))

    def recomputes(self, start: int, end: int) -> bool:
        """Whether some of these nodes are done twice, or this changes what is alive among them."""
        return self._before[end + 1] > self._before[start]


def recomputed(graph: Graph) -> RecomputedGraph:
    found: list[Recomputation] = []
    for each in _recomputations(graph):
        if not found or found[-1].second < each.nodes[0]:
            found.append(each)
    return RecomputedGraph(graph, found)


def _recomputations(graph: Graph) -> Iterator[Recomputation]:
    uses = Uses(graph)
    for second, node in enumerate(graph.nodes):
        for tensor in node.args:
            if isinstance(tensor, Tensor) and tensor in uses.maker and not uses.is_result(tensor):
                readers = uses.readers[tensor]
                if (len(readers) == 2 and readers[1] == second
                        and _is_mean_of_pixels(graph.nodes[readers[0]])):
                    nodes = _makers(graph, uses, tensor)
                    if nodes:
                        yield Recomputation(nodes, readers[0], second)


def _is_mean_of_pixels(node: Node) -> bool:
    return (node.op == MEAN and not node.is_host and not node.predicate and node.args[0].rank == 4
            and {dim % 4 for dim in node.args[1] or ()} == {2, 3})


def _makers(graph: Graph, uses: Uses, tensor: Tensor) -> list[int]:
    """The nodes, in order, that make a tensor from inputs with fewer bytes in total; empty where
    there are none, or where one of the nodes cannot be done in strips."""
    found: set[int] = set()
    inputs = {tensor}
    while inputs:
        largest = max(inputs, key=padded_bytes)
        index = uses.maker.get(largest)
        if index is None or not _can_recompute(graph.nodes[index]) or len(found) == MOST:
            return []
        # A tensor that other nodes read, too, exists in any case.
        if found and not found.issuperset(uses.readers[largest]):
            return []
        found.add(index)
        inputs.remove(largest)
        inputs.update(graph.nodes[index].tensors())
        inputs = {each for each in inputs if each.constant is None}
        # Inputs of the method are read as they came.
        nbytes = sum(padded_bytes(each) if each in uses.maker
                     else each.numel * ITEMSIZE[each.dtype] for each in inputs)
        if nbytes < padded_bytes(tensor):
            return sorted(found)
    return []


def _can_recompute(node: Node) -> bool:
    rule = declared(node, "rows")
    return (not node.is_host and not node.predicate and len(node.outs) == 1 and rule is not None
            and node.outs[0].rank == 4 and bool(rule.windows(node, 2))
            and next(node.nested(), None) is None)


def _again(node: Node, others: dict[Tensor, Tensor]) -> Node:
    """A node that is done again. `others` has, for each tensor made again, the new tensor; the
    node's result is added."""
    (out,) = node.outs
    made = Tensor(out.sizes, out.dtype, name=out.name)
    node = replace(node.with_tensors(others), outs=(made,))
    others[out] = made
    return node


def _by_rows(node: Node) -> tuple[Node, Node]:
    """A mean of pixels as two nodes: the means of all rows, not rounded, and the mean of these."""
    x, (out,) = node.args[0], node.outs
    rows = Tensor((*x.sizes[:3], 1), "float32", name=f"rows of {out.name}")
    return (replace(node, args=(x, [3], True, *node.args[3:]), outs=(rows,)),
            replace(node, args=(rows, *node.args[1:])))
