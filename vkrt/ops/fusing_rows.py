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

from vkrt.dataclass import dataclass, replace
from vkrt.graph.graph import Graph, Node
from vkrt.hints import Any
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
    rows = _Rows(graph, {copy: made for index, earlier in found.repeated.items() for copy, made in
                         zip(graph.nodes[index].outs, graph.nodes[earlier].outs, strict=True)})
    if graph.is_dynamic:
        could = Fusions(nodes=dict(found.nodes), addends=found.addends, gated=set(found.gated),
                        done=set(found.done))
        found.together = _find(graph, could, uses, replace(rows, any_rows=True))
    _find(graph, found, uses, rows)


def _find(graph: Graph, found: Fusions, uses: Uses, rows: _Rows) -> list[set[int]]:
    """Finds layers; returns sets of nodes, each as it is done without these, that one kernel does,
    or several that do the same norm."""
    # Where layers are done that are not where they stand.
    moved = {id(found.nodes[index].args): index for index in found.addends}
    places = {index: moved[id(node.args)] for index, node in enumerate(graph.nodes)
              if id(node.args) in moved}
    apart = dict(places)
    together: list[set[int]] = []
    for index in sorted(found.gated):
        first = uses.without_views(_gate_maker(graph, found, index, uses))
        second = uses.without_views(uses.only(found.nodes[index].args[1], index))
        if not first or not second or not all(map(found.is_free, (*first, *second))):
            continue
        pair = first[-1], second[-1]
        gate, other = (graph.nodes[maker] for maker in pair)
        key = rows.key(gate)
        if key is None or key != rows.key(other) or not rows.only(pair, index):
            continue
        found.gated.remove(index)
        found.done.update(first, second)
        found.gates[index] = gate
        found.nodes[index] = replace(other, outs=graph.nodes[index].outs)
        found.keep(index, *gate.tensors(), *other.tensors())
        places |= dict.fromkeys(pair, index)
        together.append(set(pair))
    for index, others in rows.beside(found):
        found.beside[index] = tuple(others.values())
        found.done.update(others)
        places |= dict.fromkeys(others, index)
        together.append({index, *others})
    chosen = _find_choices(graph, found, uses, rows, places)
    for index in _find_norms(graph, found, uses, rows, places, chosen):
        readers = uses.readers[graph.nodes[index].outs[0]]
        together.append({index, *(apart.get(reader, reader) for reader in readers)})
    return together


def _find_choices(graph: Graph, found: Fusions, uses: Uses, rows: _Rows,
                  places: dict[int, int]) -> set[int]:
    """Finds how layers quantize their rows; returns the nodes that say so."""
    chosen = set()
    for index, node in enumerate(graph.nodes):
        if node.op != CHOICE or any(map(uses.is_result, node.outs)):
            continue
        readers = {reader for out in node.outs for reader in uses.readers[out]}
        if (readers and all(reader in places or found.is_free(reader) for reader in readers)
                and rows.take_choice(node, [graph.nodes[reader] for reader in readers])):
            chosen.add(index)
            found.done.add(index)
            for place in {places.get(reader, reader) for reader in readers}:
                found.roundings[place] = Rounding(node)
                found.keep(place, *node.tensors())
    return chosen


def _find_norms(graph: Graph, found: Fusions, uses: Uses, rows: _Rows, places: dict[int, int],
                chosen: set[int]) -> list[int]:
    """Finds norms of rows; returns those whose weights several layers need.

    Args:
        places: where layers are done that are not where they stand.
        chosen: nodes that say how layers quantize rows, and read these too.
    """
    norms = []
    for index, node in enumerate(graph.nodes):
        if node.op != NORM or arguments(node) is None or uses.is_result(node.outs[0]):
            continue
        readers = set(uses.readers[node.outs[0]])
        layers = readers - chosen
        if not layers or not all(layer in places or found.is_free(layer) for layer in layers):
            continue
        where = {places.get(layer, layer) for layer in layers}
        if not rows.only({index, *readers}, max(where)):
            continue
        if rows.take_norm(node, [graph.nodes[reader] for reader in readers]):
            found.norms |= dict.fromkeys(where, node)
            norms.append(index)
        elif all(place in found.roundings and found.roundings[place].is_of(node)
                 for place in where):
            for place in where:
                found.roundings[place] = replace(found.roundings[place], norm=node)
        else:
            continue
        found.done.add(index)
        for place in where:
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
class _Rows:
    """What is asked of nodes that may be layers of one row.

    Attributes:
        graph: where.
        same: tensors that are copies of an earlier one, and which.
        any_rows: whether layers of several rows are taken for such of one.
    """

    graph: Graph
    same: dict[Tensor, Tensor]
    any_rows: bool = False

    def key(self, node: Node) -> Any:
        """What two nodes have to have in common for one kernel; None for what is no layer of one
        row."""
        count = declared(node, "of_row")
        args = count and arguments(node)
        if not args or len(node.outs) != 1:
            return None
        row, others = list(args.values())[:count], list(args.values())[count:]
        x = row[0]
        if not x.numel or (math.prod(x.sizes[:-1]) != 1 and not self.any_rows):
            return None
        if any(isinstance(value, Tensor) and value.constant is None for value in others):
            return None
        return (node.op, node.guard, x.dtype, tuple(self.same.get(value, value) for value in row),
                tuple((value.sizes, value.dtype) if isinstance(value, Tensor) else value
                      for value in others))

    def beside(self, found: Fusions) -> Iterator[tuple[int, dict[int, Node]]]:
        """Groups of layers of one row: the first by its index, and the others, which read what the
        first does."""
        groups: dict[Any, list[int]] = {}
        for index, node in enumerate(self.graph.nodes):
            key = self.key(node) if found.is_free(index) else None
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

    def take_norm(self, norm: Node, layers: list[Node]) -> bool:
        """Whether layers do the norm of the row that they read."""
        nbytes = 0
        for node in layers:
            takes, args = declared(node, "takes_norm"), arguments(node)
            if self.key(node) is None or node.guard != norm.guard or args is None:
                return False
            if takes is None or not takes(*args.values()):
                return False
            nbytes += sum(t.constant.nbytes for t in node.tensors() if t.constant is not None)
        return nbytes <= NORM_BYTES

    def take_choice(self, choice: Node, layers: list[Node]) -> bool:
        """Whether layers quantize a row as this node says."""
        if arguments(choice) is None:
            return False
        row = (choice.args[0], *choice.outs)
        return all(declared(node, "of_row") == len(row) and node.guard == choice.guard
                   and self.key(node) is not None and tuple(node.args[:len(row)]) == row
                   for node in layers)

    def _at(self, first: int, other: int) -> Node:
        """A node with the row of an earlier one: its own may not have been made there."""
        node, earlier = self.graph.nodes[other], self.graph.nodes[first]
        count = declared(node, "of_row")
        return replace(node, args=(*earlier.args[:count], *node.args[count:]))
