"""Linear layers of one row that one kernel does: where a language model writes a token, many a
dispatch costs more than its products.

Layers that read the same row (queries, keys and values) are `beside` each other, and are done where
the first of them is. Where silu of a layer's result gates that of another one, both and the product
are done in the place of the product. What only layers of one row read, its norm or how it is
quantized, is found where they are done.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from typing import Any

from vkrt.dataclass import dataclass, replace
from vkrt.graph.graph import Graph, Node
from vkrt.ops.fusions import Fusions, Rounding
from vkrt.ops.matching import Uses, arguments, declared
from vkrt.work.tensor import Tensor

# Layers that one kernel does
MOST = 3
NORM, CHOICE = "et_vk.rms_norm.default", "torchao.choose_qparams_affine.default"
# Where the weights of a row have more bytes, doing its norm again and again costs more than a
# dispatch of its own.
NORM_BYTES = 2 << 20


def find_rows(graph: Graph, found: Fusions, uses: Uses) -> None:
    """Finds layers of one row, and adds to `found` how they are done.

    Where sizes change there may be one row at others: weights that one kernel reads then are
    `together` at these sizes too.
    """
    rows = _Rows(graph, _layers_of(graph, found))
    if graph.is_dynamic:
        could = Fusions(nodes=dict(found.nodes), gated=set(found.gated), done=set(found.done),
                        moved=dict(found.moved))
        found.together = _find(graph, could, uses, replace(rows, any_rows=True))
    _find(graph, found, uses, rows)


def _find(graph: Graph, found: Fusions, uses: Uses, rows: _Rows) -> list[set[int]]:
    """Finds layers; returns sets of nodes, each as it is done without these, that one kernel does,
    or several that do the same norm."""
    before = dict(found.moved)
    together: list[set[int]] = []
    for index in sorted(found.gated):
        first = uses.without_views(_gate_maker(graph, found, index, uses))
        second = uses.without_views(uses.only(found.nodes[index].args[1], index))
        if not first or not second or not all(map(found.is_free, (*first, *second))):
            continue
        pair = first[-1], second[-1]
        key = rows.key(pair[0])
        if key is None or key != rows.key(pair[1]) or not rows.only(pair, index):
            continue
        gate, other = (graph.nodes[maker] for maker in pair)
        found.gated.remove(index)
        found.done.update(first, second)
        found.gates[index] = gate
        found.nodes[index] = replace(other, outs=graph.nodes[index].outs)
        found.keep(index, *gate.tensors(), *other.tensors())
        found.moved |= dict.fromkeys(pair, index)
        together.append(set(pair))
    for index, others in rows.beside(found):
        found.beside[index] = tuple(others.values())
        found.done.update(others)
        found.moved |= dict.fromkeys(others, index)
        together.append({index, *others})
    chosen = _find_choices(graph, found, uses, rows)
    for index in _find_norms(graph, found, uses, rows, chosen):
        readers = uses.readers[graph.nodes[index].outs[0]]
        together.append({index, *(before.get(reader, reader) for reader in readers)})
    return together


def _find_choices(graph: Graph, found: Fusions, uses: Uses, rows: _Rows) -> set[int]:
    """Finds how layers quantize their rows; returns the nodes that say so."""
    chosen = set()
    for index, node in enumerate(graph.nodes):
        if node.op != CHOICE or any(map(uses.is_result, node.outs)):
            continue
        readers = {reader for out in node.outs for reader in uses.readers[out]}
        places = found.places_of(readers)
        if places and rows.take_choice(node, readers):
            chosen.add(index)
            found.done.add(index)
            for place in places:
                found.roundings[place] = Rounding(node)
                found.keep(place, *node.tensors())
    return chosen


def _find_norms(graph: Graph, found: Fusions, uses: Uses, rows: _Rows, chosen: set[int]
                ) -> list[int]:
    """Finds norms of rows; returns those whose weights several layers need.

    Args:
        chosen: nodes that say how layers quantize rows, and read these too.
    """
    norms = []
    for index, node in enumerate(graph.nodes):
        if node.op != NORM or arguments(node) is None or uses.is_result(node.outs[0]):
            continue
        readers = set(uses.readers[node.outs[0]])
        places = found.places_of(readers - chosen)
        if not places or not rows.only({index, *readers}, max(places)):
            continue
        if rows.take_norm(node, readers):
            found.norms |= dict.fromkeys(places, node)
            norms.append(index)
        elif all(place in found.roundings and found.roundings[place].is_of(node)
                 for place in places):
            for place in places:
                found.roundings[place] = replace(found.roundings[place], norm=node)
        else:
            continue
        found.done.add(index)
        for place in places:
            found.keep(place, *node.tensors())
    return norms


def _gate_maker(graph: Graph, found: Fusions, index: int, uses: Uses) -> int | None:
    """The node whose result goes through silu to the product `index`, and nowhere else."""
    source, other = found.nodes[index].args[:2]
    silu = next(uses.maker[arg] for arg in graph.nodes[index].args[:2] if arg is not other)
    parts = {silu, *(uses.maker.get(arg) for arg in graph.nodes[silu].tensors())}
    if uses.is_result(source) or not parts.issuperset(uses.readers[source]):
        return None
    return uses.maker.get(source)


@dataclass(frozen=True)
class _Layer:
    """A node that may be a layer of one row.

    Attributes:
        key: what two have in common that one kernel does.
        is_one: whether it has one row at these sizes.
        takes_norm: whether its kernel does the norm of its row.
        nbytes: of its constants.
    """

    key: Any
    is_one: bool
    takes_norm: bool
    nbytes: int


def _layers_of(graph: Graph, found: Fusions) -> dict[int, _Layer]:
    """The layers of a graph, by the index of the node."""
    same = {copy: made for index, earlier in found.repeated.items() for copy, made in
            zip(graph.nodes[index].outs, graph.nodes[earlier].outs, strict=True)}
    layers = {}
    for index, node in enumerate(graph.nodes):
        count = declared(node, "of_row")
        args = count and arguments(node)
        if not args or len(node.outs) != 1:
            continue
        values = tuple(args.values())
        row, others = values[:count], values[count:]
        x = row[0]
        tensors = [value for value in others if isinstance(value, Tensor)]
        if not x.numel or any(tensor.constant is None for tensor in tensors):
            continue
        key = (node.op, node.guard, x.dtype, tuple(same.get(value, value) for value in row),
               tuple((value.sizes, value.dtype) if isinstance(value, Tensor) else value
                     for value in others))
        takes = declared(node, "takes_norm")
        layers[index] = _Layer(
            key, math.prod(x.sizes[:-1]) == 1, takes is not None and takes(*values),
            sum(tensor.constant.nbytes for tensor in tensors if tensor.constant is not None))
    return layers


@dataclass(frozen=True)
class _Rows:
    """What is asked of layers.

    Attributes:
        graph: where.
        layers: by the index of the node.
        any_rows: whether layers of several rows are taken for such of one.
    """

    graph: Graph
    layers: dict[int, _Layer]
    any_rows: bool = False

    def key(self, index: int) -> Any:
        """What two nodes have to have in common for one kernel; None for what is no layer of one
        row."""
        layer = self.layers.get(index)
        return layer.key if layer is not None and (layer.is_one or self.any_rows) else None

    def beside(self, found: Fusions) -> Iterator[tuple[int, dict[int, Node]]]:
        """Groups of layers of one row: the first by its index, and the others, which read what the
        first does."""
        groups: dict[Any, list[int]] = {}
        for index in self.layers:
            key = self.key(index) if found.is_free(index) else None
            if key is not None:
                groups.setdefault(key, []).append(index)
        for group in groups.values():
            for start in range(0, len(group), MOST):
                first, *others = group[start:start + MOST]
                if others and self.only((first, *others), others[-1]):
                    yield first, {other: self._at(first, other) for other in others}

    def only(self, nodes: Collection[int], last: int) -> bool:
        """Whether no node but these reads constants between the first of them and a later node:
        weights are streamed in the order of the nodes that read them."""
        return not any(tensor.constant is not None for index in range(min(nodes), last)
                       if index not in nodes for tensor in self.graph.nodes[index].tensors())

    def take_norm(self, norm: Node, nodes: Collection[int]) -> bool:
        """Whether layers do the norm of the row that they read."""
        return (all(self.key(index) is not None and self.layers[index].takes_norm
                    and self.graph.nodes[index].guard == norm.guard for index in nodes)
                and sum(self.layers[index].nbytes for index in nodes) <= NORM_BYTES)

    def take_choice(self, choice: Node, nodes: Collection[int]) -> bool:
        """Whether layers quantize a row as this node says."""
        row = (choice.args[0], *choice.outs)
        layers = [self.graph.nodes[index] for index in nodes if self.key(index) is not None]
        return (arguments(choice) is not None and len(layers) == len(nodes)
                and all(declared(node, "of_row") == len(row) and node.guard == choice.guard
                        and tuple(node.args[:len(row)]) == row for node in layers))

    def _at(self, first: int, other: int) -> Node:
        """A node with the row of an earlier one: its own may not have been made there."""
        node, earlier = self.graph.nodes[other], self.graph.nodes[first]
        count = declared(node, "of_row")
        return replace(node, args=(*earlier.args[:count], *node.args[count:]))
