"""Reuse: what lowering did for nodes that a change of sizes does not reach.

A node that is the same object in two graphs of a method has the same records in their work lists,
unless something it touches was made, or is looked at, by a node that changes: where an operand
lies, whether it was copied before and who else reads its bytes all go into a node's records. So a
node is only reused while nothing it is connected to has been touched by one that is not.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from vkrt.dataclass import dataclass, field, replace
from vkrt.graph.graph import Node
from vkrt.ops.strided import Strided
from vkrt.work.records import WorkList
from vkrt.work.tensor import Constant, Operand, Tensor


@dataclass(frozen=True)
class NodeMemo:
    """What lowering a node did.

    Attributes:
        node: which one.
        how: what of it was lowered differently (`vkrt.ops.fusing.Fusions.how`).
        steps: its records.
        places: where it put tensors, in order.
        copies: the copies it made, by tensor and order.
        constants: the constants that it made tensors of.
    """

    node: Node
    how: tuple[Any, ...]
    steps: tuple[Any, ...]
    places: tuple[tuple[Tensor, Operand | Strided], ...]
    copies: tuple[tuple[tuple[Any, ...], Operand], ...]
    constants: tuple[tuple[Tensor, Constant], ...]


@dataclass(frozen=True)
class Memo:
    """What lowering a graph did, for work lists of the same method at other sizes.

    Attributes:
        inputs: the operands of the graph's inputs.
        nodes: what was done for each node.
        weights: the operand of each weight by what it is made of and how it lies.
        copied: views that are not left where they are (`vkrt.ops.parts_memory`).
    """

    inputs: Mapping[Tensor, Operand] = field(default_factory=dict)
    nodes: tuple[NodeMemo, ...] = ()
    weights: Mapping[tuple[Any, ...], Operand] = field(default_factory=dict)
    copied: Collection[int] = frozenset()


def with_weights_of(base: WorkList, work: WorkList) -> WorkList:
    """A work list that has all weights of another one, which was made from it at other sizes."""
    return replace(base, storages=work.storages, prepacks=work.prepacks,
                   memo=replace(base.memo, weights=work.memo.weights))


class Reuse:
    """Tells which nodes of a graph have the records of another lowering; asked node by node.

    Args:
        memo: of the other lowering; an empty one where there is none.
    """

    def __init__(self, memo: Memo):
        self._memo = memo
        # Of tensors that are connected by nodes one stands for all.
        self._leaders: dict[Tensor, Tensor] = {}
        self._changed: set[Tensor] = set()
        self._made: set[Tensor] = set()

    def input(self, tensor: Tensor) -> Operand | None:
        """The operand of a method's input that is the same; None for one that changes."""
        operand = self._memo.inputs.get(tensor)
        if operand is None:
            self._changed.add(self._leader(tensor))
        return operand

    def find(self, index: int, node: Node, how: tuple[Any, ...]) -> NodeMemo | None:
        """What lowering the node of this index did; None where it has to be lowered anew.

        Args:
            how: what of it is lowered differently now.
        """
        found = self._memo.nodes[index] if index < len(self._memo.nodes) else None
        if found is not None and (found.node is not node or found.how != how):
            found = None
        self._made.update(node.outs)
        leader = self._connect([*node.reads(), *node.outs])
        if leader is None:
            return found
        if found is None:
            self._changed.add(leader)
        return None if leader in self._changed else found

    def _connect(self, tensors: Iterable[Tensor]) -> Tensor | None:
        """Joins what these tensors are connected to, but for constants of the file; returns what
        stands for all."""
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
