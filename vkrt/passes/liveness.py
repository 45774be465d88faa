"""Liveness: between which nodes the tensors of a graph are alive, by the graph alone."""

from __future__ import annotations

import math
from collections.abc import Collection
from itertools import accumulate

from vkrt.graph.graph import FOREVER, Graph, Node
from vkrt.ops.attributes import BORDERED
from vkrt.ops.registry import operator
from vkrt.ops.strided import PERMUTATIONS, RESHAPES
from vkrt.work.tensor import ITEMSIZE, Tensor, round_up


def padded_bytes(tensor: Tensor) -> int:
    """Bytes of a tensor as kernels pad it: texels have 4 channels in tensors of rank 4, and 4
    elements of the last dimension in others. Constants have none."""
    if tensor.constant is not None:
        return 0
    packed = 1 if tensor.rank == 4 else tensor.rank - 1
    elements = math.prod(round_up(size, 4) if dim == packed else size
                         for dim, size in enumerate(tensor.sizes))
    return elements * ITEMSIZE[tensor.dtype]


class Liveness:
    """The memory of a graph's tensors over its nodes.

    Args:
        again: nodes that are done a second time: they read inputs of the method as they came, not
            the copy that another node has made.

    Attributes:
        root: the tensor in whose memory a tensor is: itself, the one that it is a view of, or the
            one that it is written over.
        at_node: bytes that are alive at each node.
        before: the same before each node, and behind the last.
    """

    def __init__(self, graph: Graph, again: Collection[int] = ()):
        self.root: dict[Tensor, Tensor] = {}
        self._nbytes: dict[Tensor, int] = {}
        # The views of each tensor that is no view
        self._views: dict[Tensor, list[Tensor]] = {}
        self._first: dict[Tensor, int] = {}
        self._last: dict[Tensor, int] = {}
        # Inputs that nodes have read -> the copies that these made, or None where none is needed
        self._copies: dict[Tensor, Tensor | None] = {}
        count = len(graph.nodes)
        for tensor in graph.inputs:
            if isinstance(tensor, Tensor):
                self._enter(graph, tensor, -1)
                self._nbytes[tensor] = tensor.numel * ITEMSIZE[tensor.dtype]
        # The old and the new values of states have memory of their own.
        kept = {state.after for state in graph.states}
        for state in graph.states:
            self._enter(graph, state.before, -1)
            self._nbytes[state.before] = 0
        for index, node in enumerate(graph.nodes):
            for tensor in node.tensors():
                self.root.setdefault(tensor, tensor)
                if self._first.get(tensor) == -1:
                    self._read_input(graph, tensor, index, index in again)
            for out in node.outs:
                self._enter(graph, out, index)
                if out in kept:
                    self._nbytes[out] = 0
            source = node.args[0] if node.args else None
            if node.op in RESHAPES | PERMUTATIONS and isinstance(source, Tensor):
                self._join(node.outs[0], self.root[source])
        for index, node in enumerate(graph.nodes):
            self._write_over(index, node)
        # How both attributes change
        at_node, before = [0] * (count + 2), [0] * (count + 2)
        for tensor, first in self._first.items():
            if self.root[tensor] is tensor:
                nbytes, end = self._nbytes[tensor], min(max(self._last[tensor], first), count) + 1
                at_node[max(first, 0)] += nbytes
                at_node[end] -= nbytes
                before[first + 1] += nbytes
                before[end] -= nbytes
        self.at_node = list(accumulate(at_node))[:count]
        self.before = list(accumulate(before))[:count + 1]

    def _enter(self, graph: Graph, tensor: Tensor, first: int) -> None:
        self.root[tensor] = tensor
        self._nbytes[tensor] = padded_bytes(tensor)
        self._first[tensor], self._last[tensor] = first, graph.last_use(tensor)

    def _read_input(self, graph: Graph, tensor: Tensor, index: int, is_again: bool) -> None:
        """The first node that reads an input copies it into the layout of kernels, if that is
        another one. Later nodes read the copy."""
        if tensor not in self._copies or is_again:
            self._copies[tensor] = None
            if graph.nodes[index].op in BORDERED or padded_bytes(tensor) != self._nbytes[tensor]:
                made = self._copies[tensor] = Tensor(tensor.sizes, tensor.dtype)
                self.root[made], self._nbytes[made] = made, padded_bytes(tensor)
                self._first[made] = index
                if graph.last_use(tensor) < FOREVER:
                    self._last[tensor] = index
        copy = self._copies[tensor]
        if copy is not None:
            self._last[copy] = index

    def _join(self, tensor: Tensor, root: Tensor) -> None:
        self.root[tensor] = root
        self._views.setdefault(root, []).append(tensor)
        if root in self._last:
            self._last[root] = max(self._last[root], self._last[tensor])

    def _write_over(self, index: int, node: Node) -> None:
        """A function of elements writes over an argument that nothing reads any more."""
        found = operator(node.op)
        out = node.outs[0]
        if (found is None or found.rows is None or not found.rows.overwrites
                or self.root[out] is not out):
            return
        for tensor in node.tensors():
            root = self.root[tensor]
            if (self._last.get(root) == index and self._nbytes[root] == self._nbytes[out]
                    and root.dtype == out.dtype):
                # A tensor moves once at most: its new root is older, and does not move any more.
                self.root.update(dict.fromkeys((out, *self._views.get(out, ())), root))
                self._last[root] = max(index, self._last[out])
                return

    def around(self, start: int, results: Collection[Tensor]) -> int:
        """Bytes of the tensors that are alive before the node `start`, and of `results`."""
        made = {self.root[out]: self._nbytes[out] for out in results}
        return self.before[start] + sum(made.values())

    def own_bytes(self, node: Node) -> int:
        """Bytes of the results of a node that have memory of their own."""
        return sum(self._nbytes[out] for out in node.outs if self.root[out] is out)

    def cuts(self) -> set[int]:
        """The indices before which no more bytes are alive than before both neighbours, and both
        ends: a run of nodes is worth beginning or ending only there."""
        last = len(self.before) - 1
        return {0, last, *(index for index in range(1, last) if self.before[index] <= min(
            self.before[index - 1], self.before[index + 1]))}
