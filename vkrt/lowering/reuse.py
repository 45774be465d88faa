"""Reuse: what lowering did for nodes that a change of sizes does not reach.

A node's records depend on where its operands lie, whether they were copied before, and who else
reads their bytes. So a node that is the same in two graphs of a method has the same records, unless
a changed node makes or reads one of its tensors. A node is only reused while no node that is not
reused has touched a tensor that is connected with it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from vkrt.graph.graph import Node
from vkrt.ops.strided import Strided
from vkrt.work.command_list import CommandList
from vkrt.work.target import Slices, Strips
from vkrt.work.tensor import Constant, Operand, Tensor


@dataclass(frozen=True)
class NodeMemo:
    """What lowering a node did.

    Attributes:
        node: which one.
        steps: its records.
        places: where it put tensors, in order.
        copies: the copies it made, by tensor and order.
        constants: the constants that it made tensors of.
    """

    node: Node
    steps: tuple[Any, ...]
    places: tuple[tuple[Tensor, Operand | Strided], ...]
    copies: tuple[tuple[tuple[Any, ...], Operand], ...]
    constants: tuple[tuple[Tensor, Constant], ...]


@dataclass(frozen=True)
class Memo:
    """What lowering a graph did, for command lists of the same method at other sizes.

    Attributes:
        inputs: the operands of the graph's inputs.
        nodes: what was done for each node.
        weights: the operand of each weight by what it is made of and how it lies.
        copied: numbers of views that are not left where they are (`vkrt.lowering.parts_memory`).
        parts: as `Target.parts` has them.
    """

    inputs: Mapping[Tensor, Operand] = field(default_factory=dict)
    nodes: tuple[NodeMemo, ...] = ()
    weights: Mapping[tuple[Any, ...], Operand] = field(default_factory=dict)
    copied: Collection[int] = frozenset()
    parts: tuple[Slices | Strips, ...] = ()


def with_weights_of(base: CommandList, work: CommandList) -> CommandList:
    """`base` with all weights of `work`, a command list that was made from it at other sizes."""
    return replace(base, storages=work.storages, prepacks=work.prepacks,
                   memo=replace(base.memo, weights=work.memo.weights))


class Reuse:
    """Tells which nodes of a graph have the records of another lowering; asked node by node.

    Passes make other nodes at other sizes. So the tensors of a node that only the other lowering
    has count as changed, too.

    Args:
        memo: of the other lowering; an empty one where there is none.
        nodes: of the graph, as passes have rewritten it.
    """

    def __init__(self, memo: Memo, nodes: Sequence[Node]):
        self._memo = memo
        known = {entry.node.outs: place for place, entry in enumerate(memo.nodes)}
        self._places = [self._same_at(known.get(node.outs), node) for node in nodes]
        self._kept = set(self._places)
        # How many nodes of the other lowering have been passed by
        self._passed = 0
        # Of tensors that nodes connect, one is the leader of all.
        self._leaders: dict[Tensor, Tensor] = {}
        self._changed: set[Tensor] = set()
        self._made: set[Tensor] = set()

    def input(self, tensor: Tensor) -> Operand | None:
        """The operand of an input of the method that stays the same; None for one that changes."""
        operand = self._memo.inputs.get(tensor)
        if operand is None:
            self._changed.add(self._leader(tensor))
        return operand

    def find(self, index: int, node: Node) -> NodeMemo | None:
        """What lowering the node of this index did; None where it has to be lowered anew."""
        place, found = self._places[index], None
        if place is not None:
            self._pass_by(place)
            found = self._memo.nodes[place]
        self._made.update(node.outs)
        leader = self._connect([*node.reads(), *node.outs])
        if leader is None:
            return found
        if found is None:
            self._changed.add(leader)
        return None if leader in self._changed else found

    def _same_at(self, place: int | None, node: Node) -> int | None:
        """The place, if the other lowering had the same node there."""
        return place if place is not None and self._memo.nodes[place].node.is_same(node) else None

    def _pass_by(self, place: int) -> None:
        """Goes on to a node of the other lowering; the tensors of skipped nodes have changed."""
        for index in range(self._passed, place):
            if index not in self._kept:
                node = self._memo.nodes[index].node
                self._changed.update(map(self._leader, (*node.reads(), *node.outs)))
        self._passed = max(self._passed, place)

    def _connect(self, tensors: Iterable[Tensor]) -> Tensor | None:
        """Joins the groups of these tensors, without constants of the file; returns the leader of
        all."""
        leaders = {self._leader(t) for t in tensors if t.constant is None or t in self._made}
        if not leaders:
            return None
        first, *others = leaders
        changed = not leaders.isdisjoint(self._changed)
        for other in others:
            self._leaders[other] = first
        if changed:
            self._changed.add(first)
        return first

    def _leader(self, tensor: Tensor) -> Tensor:
        while (up := self._leaders.get(tensor, tensor)) is not tensor:
            # Halves the path for the next time.
            self._leaders[tensor] = self._leaders.get(up, up)
            tensor = up
        return tensor
