"""Operators that exporters decomposed, put together again.

A constant of one element becomes a number, so that arithmetic needs no second operand and nothing
converts the number in every run. relu6(x + 3) / 6 is `hardsigmoid`; where(x > 0, x, x * w) is
`leaky_relu` where w is a number, and `_prelu_kernel` where it is a tensor. Half precision rounds
nothing in between, and hardsigmoid is rounded in another place.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from vkrt.graph.graph import Graph, Node
from vkrt.ops.arguments import rounded
from vkrt.ops.broadcast import is_float
from vkrt.passes.matching import alike, arguments, declared, takes_activation
from vkrt.passes.rewrite import Pass, Rewrite
from vkrt.work.target import Target
from vkrt.work.tensor import Tensor

# Operators that pass one value on, in the dtype of the result
COPIES = frozenset({"aten._to_copy.default", "dim_order_ops._to_dim_order_copy.default",
                    "aten.clone.default", "dim_order_ops._clone_dim_order.default"})

# Operators of two tensors -> those of a tensor and a number, which was the second, or the first
WITH_NUMBER = {
    "aten.add.Tensor": ("aten.add.Scalar", "aten.add.Scalar"),
    "aten.sub.Tensor": ("aten.sub.Scalar", "aten.rsub.Scalar"),
    "aten.mul.Tensor": ("aten.mul.Scalar", "aten.mul.Scalar"),
    "aten.div.Tensor": ("aten.div.Scalar", None),
}


def simplify(graph: Graph, _target: Target) -> Graph:
    rewrite = Rewrite(graph)
    found = _Simplifier(rewrite)
    for index, node in found.nodes.items():
        rewrite.replace(index, node)
    rewrite.remove(found.done)
    return rewrite.result()


SIMPLIFY = Pass("simplify", "numbers in tensors, hardsigmoid, leaky_relu and prelu become one node",
                simplify)


class _Simplifier:
    """Finds the nodes of a graph that can be simpler."""

    def __init__(self, rewrite: Rewrite):
        self._graph = graph = rewrite.graph
        self._rewrite = rewrite
        # Results of copies whose value is known
        self._numbers: dict[Tensor, float] = {}
        # The simpler nodes, by the index of the node that each replaces
        self.nodes: dict[int, Node] = {}
        self.done: set[int] = set()  # nodes whose results nothing reads any more
        for index, node in enumerate(graph.nodes):
            if len(node.outs) == 1 and node.args:
                self._pass_on(node)
                self._use_number(index, node)
                self._find_hardsigmoid(index)
                self._find_leaky(index, node)
        self._keep_activations()
        self._drop_copies()

    def _now(self, index: int) -> Node:
        return self.nodes.get(index, self._graph.nodes[index])

    def _number(self, value: Any) -> float | None:
        """The number that a one-element tensor has in every run; None for any other value."""
        if not isinstance(value, Tensor):
            return None
        if value.constant is not None and value not in self._rewrite.uses.maker:
            return value.constant.number
        return self._numbers.get(value)

    def _pass_on(self, node: Node) -> None:
        if node.op in COPIES and is_float(node.outs[0].dtype) and node.outs[0].numel == 1:
            number = self._number(node.args[0])
            if number is not None:
                self._numbers[node.outs[0]] = rounded(number, node.outs[0].dtype)

    def _use_number(self, index: int, node: Node) -> None:
        if node.op not in WITH_NUMBER or len(node.args) < 2 or node.args[2:] not in ((), (1,)):
            return
        out, (second, first) = node.outs[0], WITH_NUMBER[node.op]
        for x, other, name in ((*node.args[:2], second), (*node.args[1::-1], first)):
            number = self._number(other)
            if name and number is not None and isinstance(x, Tensor) and alike(x, out):
                self.nodes[index] = replace(node, op=name, args=(x, number, *node.args[2:]))
                return

    def _find_hardsigmoid(self, index: int) -> None:
        node = self._now(index)
        if (node.op != "aten.div.Scalar" or node.args[1:] != (6,)
                or not is_float(node.outs[0].dtype)):
            return
        low, high, at = -math.inf, math.inf, index
        between: set[int] = set()
        while (maker := self._rewrite.uses.only(self._now(at).args[0], at)) is not None:
            inner = self._now(maker)
            if inner.op == "aten.add.Scalar":
                x, *numbers = inner.args
                if (numbers in ([3], [3, 1]) and (low, high) == (0, 6)
                        and isinstance(x, Tensor) and alike(node.outs[0], x)):
                    self.nodes[index] = replace(node, op="aten.hardsigmoid.default", args=(x,))
                    self.done |= {*between, maker}
                return
            if declared(inner, "activation") != "CLAMP":
                return
            bounds = arguments(inner)
            if bounds is None or not alike(node.outs[0], inner.outs[0]):
                return
            # This clamp comes first, so the bounds found so far limit its own bounds.
            low, high = (min(max(bound, low), high)
                         for bound in declared(inner, "bounds")(*bounds.values()))
            between.add(maker)
            at = maker

    def _find_leaky(self, index: int, node: Node) -> None:
        if node.op != "aten.where.self" or len(node.args) != 3:
            return
        condition, x, small = node.args
        tested, product = (self._rewrite.uses.only(value, index) for value in (condition, small))
        if (tested is None or product is None or not isinstance(x, Tensor)
                or not alike(node.outs[0], x, small) or condition.sizes != x.sizes):
            return
        test, times = self._graph.nodes[tested], self._now(product)
        if not self._is_positive(test, x) or len(times.args) != 2:
            return
        if times.op == "aten.mul.Scalar" and times.args[0] is x:
            made = replace(node, op="aten.leaky_relu.default", args=times.args)
        elif times.op == "aten.mul.Tensor" and any(factor is x for factor in times.args):
            weight = times.args[times.args[0] is x]
            if not isinstance(weight, Tensor) or weight.dtype != x.dtype:
                return
            made = replace(node, op="aten._prelu_kernel.default", args=(x, weight))
        else:
            return
        self.nodes[index] = made
        self.nodes.pop(product, None)
        self.done |= {tested, product}

    def _is_positive(self, node: Node, x: Tensor) -> bool:
        """Whether a node tests if the elements of x are greater than 0."""
        if len(node.args) != 2 or node.args[0] is not x:
            return False
        number = node.args[1]
        return (node.op == "aten.gt.Scalar" and number == 0
                or node.op == "aten.gt.Tensor" and self._number(number) == 0)

    def _keep_activations(self) -> None:
        """Drops changes of sums and products whose kernels can do the activation that follows."""
        for index in list(self.nodes):
            node = self._graph.nodes[index]
            readers = self._rewrite.uses.readers[node.outs[0]]
            if (index not in self.done and len(readers) == 1
                    and readers[0] not in self.done | self.nodes.keys()
                    and takes_activation(node, declared(self._graph.nodes[readers[0]],
                                                        "activation"))):
                del self.nodes[index]

    def _drop_copies(self) -> None:
        for tensor in reversed(self._numbers):
            if not self._rewrite.uses.is_result(tensor) and not any(
                    reader not in self.done and tensor in self._now(reader).reads()
                    for reader in self._rewrite.uses.readers[tensor]):
                self.done.add(self._rewrite.uses.maker[tensor])
