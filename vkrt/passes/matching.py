"""Pattern matching: the questions that passes ask about nodes and tensors."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from vkrt.errors import VkrtError
from vkrt.graph.graph import Graph, Node
from vkrt.ops.broadcast import is_float
from vkrt.ops.registry import operator
from vkrt.work.tensor import Tensor


class Uses:
    """Who makes and who reads the tensors of a graph."""

    def __init__(self, graph: Graph):
        self._graph = graph
        self._results = set(graph.results())
        # The index of the node that makes a tensor
        self.maker = {out: index for index, node in enumerate(graph.nodes) for out in node.outs}
        # The nodes that read it, once for each time; also those whose predicate reads it
        self.readers: dict[Tensor, list[int]] = defaultdict(list)
        for index, node in enumerate(graph.nodes):
            for tensor in node.reads():
                self.readers[tensor].append(index)

    def is_result(self, tensor: Tensor) -> bool:
        """Whether a tensor is an output of the method, or becomes the value of a state."""
        return tensor in self._results

    def count(self, tensor: Tensor) -> int:
        return len(self.readers[tensor]) + self.is_result(tensor)

    def only(self, value: Any, reader: int) -> int | None:
        """The node that makes a tensor, if only the node `reader` reads the tensor, and only once;
        None for any other value."""
        if (not isinstance(value, Tensor) or self.readers[value] != [reader]
                or self.is_result(value)):
            return None
        return self.maker.get(value)

    def without_views(self, index: int | None) -> list[int]:
        """The chain from a node back through views, which keep the last dimension and have one
        reader, to the first node that is no view. Empty where there is no such node."""
        chain: list[int] = []
        while index is not None:
            chain.append(index)
            node = self._graph.nodes[index]
            if node.op != "aten.view_copy.default":
                return chain
            source = next(iter(node.args), None)
            same = isinstance(source, Tensor) and source.sizes[-1:] == node.outs[0].sizes[-1:]
            index = self.only(source, index) if same else None
        return []


def declared(node: Node, what: str) -> Any:
    """An attribute of the declaration of a node's operator; None where vkrt lacks the operator."""
    return getattr(operator(node.op), what, None)


def takes_activation(node: Node, activation: str | None) -> bool:
    """Whether the kernel of a node can also do an activation of this name."""
    return activation in (declared(node, "takes_activation") or ())


def arguments(node: Node) -> dict[str, Any] | None:
    """A node's arguments by their names; None if they are wrong, which checks report later."""
    found = operator(node.op)
    assert found is not None  # else it would not be part of a chain
    try:
        read = found.read(node.args)
    except (VkrtError, ArithmeticError, LookupError, TypeError, ValueError):
        return None
    names = [parameter.name for parameter in found.schema.parameters if parameter.kind != "-"]
    return dict(zip(names, read, strict=True))


def alike(first: Tensor, *others: Tensor) -> bool:
    """Whether tensors of floats have one dtype and the same sizes."""
    return is_float(first.dtype) and all(
        (tensor.dtype, tuple(tensor.sizes)) == (first.dtype, tuple(first.sizes))
        for tensor in others)
