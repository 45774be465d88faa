"""What to lower differently than the nodes of a graph say, because kernels do several of them."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from vkrt.dataclass import dataclass, field
from vkrt.graph.graph import Node
from vkrt.ops.fusing_q8 import Requantization
from vkrt.work.tensor import Tensor


@dataclass(frozen=True)
class Rounding:
    """How layers quantize the row that they read.

    Attributes:
        choice: what chooses the scale and the zero point.
        norm: of the row, which nothing else reads; None for none.
    """

    choice: Node
    norm: Node | None = None

    def is_of(self, norm: Node) -> bool:
        """Whether a norm makes the row."""
        return self.choice.args[0] is norm.outs[0] and self.choice.guard == norm.guard


@dataclass
class Fusions:
    """What to lower differently, by the index of the node.

    Attributes:
        nodes: to lower in the place of the one there.
        tails: activations that the node there does as well.
        addends: what the product there adds to its result.
        requantized: what the node there does to its quantized result as well.
        gated: products there whose first factor goes through silu before.
        guarded: softmax there, with zeros for rows that hold nothing but -inf.
        until: tensors that a node reads in the place of an earlier one, and which node.
        done: nodes that others do.
        moved: layers that are done in the place of another node, and which.
        repeated: nodes that do the same as an earlier one, and which.
        gates: layers of one row whose silu the result of the layer there is multiplied with.
        beside: layers of the row of the layer there, which are done with it.
        norms: what the layers there do to their row before.
        roundings: how the layers there quantize their row.
        rotaries: what turns the queries and the keys of the attention there.
        parts: views that nothing but products of batches reads.
        factors: what the product there multiplies its result with.
        turns: views of the product there, whose rows it puts where the last of them has them.
        together: sets of nodes whose weights one kernel reads at other sizes.
    """

    nodes: dict[int, Node] = field(default_factory=dict)
    tails: dict[int, Node] = field(default_factory=dict)
    addends: dict[int, Tensor] = field(default_factory=dict)
    requantized: dict[int, Requantization] = field(default_factory=dict)
    gated: set[int] = field(default_factory=set)
    guarded: set[int] = field(default_factory=set)
    until: dict[Tensor, int] = field(default_factory=dict)
    done: set[int] = field(default_factory=set)
    moved: dict[int, int] = field(default_factory=dict)
    repeated: dict[int, int] = field(default_factory=dict)
    gates: dict[int, Node] = field(default_factory=dict)
    beside: dict[int, tuple[Node, ...]] = field(default_factory=dict)
    norms: dict[int, Node] = field(default_factory=dict)
    roundings: dict[int, Rounding] = field(default_factory=dict)
    rotaries: dict[int, Node] = field(default_factory=dict)
    parts: set[int] = field(default_factory=set)
    factors: dict[int, float] = field(default_factory=dict)
    turns: dict[int, tuple[Node, ...]] = field(default_factory=dict)
    together: list[set[int]] = field(default_factory=list)

    def keep(self, index: int, *tensors: Tensor) -> None:
        """Notes that a node reads tensors in the place of an earlier one."""
        for tensor in tensors:
            self.until[tensor] = max(index, self.until.get(tensor, -1))

    def is_free(self, index: int) -> bool:
        """Whether a node is lowered as it stands in the graph."""
        return index not in self.done and index not in self.nodes

    def places_of(self, layers: Collection[int]) -> set[int]:
        """Where layers are done; empty where one of them is done in other ways."""
        if not all(index in self.moved or self.is_free(index) for index in layers):
            return set()
        return {self.moved.get(index, index) for index in layers}

    def how(self, index: int) -> tuple[Any, ...]:
        """What is lowered differently at a node: where two lowerings say the same of one node, they
        do the same there."""
        rounding = self.roundings.get(index)
        each = (self.nodes, self.tails, self.gates, self.norms, self.rotaries)
        nodes = (*(kind.get(index) for kind in each), *self.beside.get(index, ()),
                 *self.turns.get(index, ()),
                 *((rounding.choice, rounding.norm) if rounding else ()))
        return (index in self.done, index in self.gated, index in self.guarded,
                index in self.parts, self.factors.get(index),
                self.repeated.get(index), self.requantized.get(index), self.addends.get(index),
                *(node and (node.op, node.args, node.outs) for node in nodes))
