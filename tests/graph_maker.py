"""Graphs made by hand, whose results have the sizes and dtypes that their operators say."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from vkrt.dynamic.ranges import find_dynamic
from vkrt.graph.graph import Graph, Node, node_of
from vkrt.graph.symbols import Symbol, size_of
from vkrt.ops.registry import known
from vkrt.work.tensor import Constant, Tensor


def value(*sizes: int, dtype: str = "float32", name: str = "input 0") -> Tensor:
    return Tensor(sizes, dtype, name=name)


def constant(*sizes: int, offset: int = 0, dtype: str = "float32") -> Tensor:
    """A tensor whose bytes are in the file, from an offset on."""
    nbytes = math.prod(sizes) * np.dtype(dtype).itemsize
    return Tensor(sizes, dtype, constant=Constant(offset, nbytes, dtype))


def new_node(op: str, *args: Any, dtypes: Sequence[str] = (), count: int | None = None) -> Node:
    """A node with new results.

    Args:
        dtypes: of the results; by default that of the first tensor, where the operator's rule
            allows it, or one of those that it allows.
        count: of the results, by default all that the operator has.
    """
    operator, node = known(op), node_of(op, args, ())
    sizes = operator.infer(node.args)[:count]
    first = next((tensor.dtype for tensor in node.tensors()), "float32")
    dtypes = dtypes or [first if allowed is None or first in allowed else min(allowed)
                        for allowed in operator.result_dtypes(node.args, len(sizes))]
    node.outs = tuple(map(Tensor, sizes, dtypes))
    return node


class Nodes(list[Node]):
    """Nodes of a graph in the making."""

    def put(self, node: Node) -> Tensor:
        """Adds a node; its first result."""
        node.label = f"node {len(self)}"
        self.append(node)
        return node.outs[0]

    def add(self, op: str, *args: Any, **options: Any) -> Tensor:
        """Adds a `new_node`; its first result."""
        return self.put(new_node(op, *args, **options))


def graph_of(x: Tensor, nodes: list[Node], *more: Tensor) -> Graph:
    """The graph that gives the last node's result, and others."""
    return Graph("network", [x], [nodes[-1].outs[0], *more], nodes).finish()


def graph_of_node(op: str, *args: Any, **options: Any) -> Graph:
    """A graph of one `new_node`, whose inputs are the tensors that are no constants."""
    node = new_node(op, *args, **options)
    inputs = dict.fromkeys(tensor for tensor in node.tensors() if tensor.constant is None)
    return Graph("network", list(inputs), list(node.outs), [node]).finish()


class DynamicGraph:
    """A graph in the making with the sizes that a file has, which are bounds."""

    def __init__(self, *inputs: Tensor):
        self.graph = Graph("made", list(inputs))

    def symbol(self, kind: str, *args: Any, bound: int = 0) -> Symbol:
        """A size of a tensor, or a number that is read or computed."""
        symbol = size_of(*args) if kind == "size" else Symbol(kind, args, bound)
        self.graph.chain.append(symbol)
        return symbol

    def add(self, op: str, args: Sequence[Any], *sizes: int, dtype: str = "float32") -> Tensor:
        """A node with one result."""
        out = Tensor(sizes, dtype)
        node = node_of(op, args, (out,), f"node {len(self.graph.nodes)}")
        self.graph.nodes.append(node)
        self.graph.chain.append(node)
        return out

    def finish(self, *outputs: Any, finds_dynamic: bool = False) -> Graph:
        """The graph; with its bounds and dynamic dimensions worked out, if asked for."""
        self.graph.outputs = list(outputs)
        self.graph.finish()
        if finds_dynamic:
            find_dynamic(self.graph)
        return self.graph


class Constants:
    """Constants of a graph in the making, and their bytes."""

    def __init__(self) -> None:
        self.data = bytearray()

    def add(self, array: np.ndarray) -> Tensor:
        self.data.extend(bytes(-len(self.data) % 16))
        self.data.extend(array.tobytes())
        return constant(*array.shape, offset=len(self.data) - array.nbytes, dtype=str(array.dtype))
