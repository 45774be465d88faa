"""Reuse: records of nodes that a change of sizes does not reach.

A node that is the same object in two graphs of a method has the same records in their work lists,
unless something it touches was made, or is looked at, by a node that changes: where an operand
lies, whether it was copied before and who else reads its bytes all go into a node's records. So a
node is only reused while nothing it is connected to has been touched by one that is not.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field
from typing import Any

from vkrt.dataclass import dataclass
from vkrt.graph.graph import Node
from vkrt.work.records import WorkList
from vkrt.work.tensor import Operand, Tensor


@dataclass(frozen=True)
class Trace:
    """What lowering a node did.

    Attributes:
        node: which one.
        steps: its records.
        places: where it put tensors, in order.
        copies: the copies it made, by tensor and order.
    """

    node: Node
    steps: tuple[Any, ...]
    places: tuple[tuple[Tensor, Operand], ...]
    copies: tuple[tuple[tuple[Any, ...], Operand], ...]


@dataclass
class Traces:
    """What lowering a graph did: the operands of its inputs, and each node's trace."""

    inputs: dict[Tensor, Operand] = field(default_factory=dict)
    nodes: list[Trace] = field(default_factory=list)


class Journal:
    """What is done for the current node.

    Args:
        work: the work list in the making.
    """

    def __init__(self, work: WorkList):
        self._work = work
        self.begin()

    def begin(self) -> None:
        """Begins with a node."""
        self._first = len(self._work.steps)
        self.places: list[tuple[Tensor, Operand]] = []
        self.copies: list[tuple[tuple[Any, ...], Operand]] = []

    def trace(self, node: Node) -> Trace:
        """What was done for it."""
        return Trace(node, tuple(self._work.steps[self._first:]), tuple(self.places),
                     tuple(self.copies))


def repeat(cx: Any, trace: Trace) -> None:
    """Does for the current node of a lowering what another lowering did."""
    for tensor, operand in trace.places:
        cx.place(tensor, operand)
    for key, copy in trace.copies:
        cx.keep_copy(key, copy)
    cx.work.steps += trace.steps


class Reuse:
    """Tells which nodes of a graph have the records of another lowering; asked node by node.

    Args:
        traces: of the other lowering; None where there is none.
    """

    def __init__(self, traces: Traces | None):
        self._traces = traces or Traces()
        # Of tensors that are connected by nodes one stands for all.
        self._leaders: dict[Tensor, Tensor] = {}
        self._changed: set[Tensor] = set()
        self._made: set[Tensor] = set()

    def input(self, tensor: Tensor) -> Operand | None:
        """The operand of a method's input that is the same; None for one that changes."""
        operand = self._traces.inputs.get(tensor)
        if operand is None:
            self._changed.add(self._leader(tensor))
        return operand

    def trace(self, index: int, node: Node) -> Trace | None:
        """What lowering the node of this index did; None where it has to be lowered anew."""
        found = self._traces.nodes[index] if index < len(self._traces.nodes) else None
        self._made.update(node.outs)
        leader = self._connect([*node.tensors(), *node.outs])
        if leader is None:
            return found if found is not None and found.node is node else None
        if found is None or found.node is not node:
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
            # Halves the way for the next time.
            self._leaders[tensor] = self._leaders.get(up, up)
            tensor = up
        return tensor
