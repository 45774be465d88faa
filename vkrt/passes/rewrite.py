"""Passes: a name, a rewrite of a graph, and the checks of the graph that it makes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from vkrt.errors import InternalError, VkrtError
from vkrt.graph.graph import Graph, Node
from vkrt.ops.registry import known
from vkrt.passes.matching import Uses
from vkrt.report import debug
from vkrt.work.target import Target
from vkrt.work.tensor import Tensor

# Whether a wrong node that a pass makes is an InternalError. Tests have it so; else what the pass
# would change stays as it is, and the program runs without that.
strict = False


@dataclass(frozen=True)
class Pass:
    """One rewrite of graphs."""

    name: str
    summary: str
    run: Callable[[Graph, Target], Graph]  # returns the same object where nothing changed
    # Only graphs with a node of one of these operators are changed; empty for any
    roots: frozenset[str] = frozenset()
    # Whether it runs where no nodes are fused, too, and cannot be skipped: devices would refuse
    # programs without it
    is_required: bool = False


class Rewrite:
    """A graph, and the changes of its nodes so far."""

    def __init__(self, graph: Graph):
        self.graph = graph
        self._changes: dict[int, Node | None] = {}

    @cached_property
    def uses(self) -> Uses:
        return Uses(self.graph)

    def node(self, index: int) -> Node:
        """The node at this index, or the one that replaces it."""
        return self._changes.get(index) or self.graph.nodes[index]

    def is_free(self, *indices: int) -> bool:
        """Whether none of these nodes is replaced or removed."""
        return self._changes.keys().isdisjoint(indices)

    def replace(self, index: int, node: Node, gone: Iterable[int] = ()) -> None:
        """Replaces a node, and removes the nodes `gone`, whose work the new node does, too."""
        self._changes[index] = node
        self.remove(gone)

    def remove(self, indices: Iterable[int]) -> None:
        self._changes |= dict.fromkeys(indices)

    def result(self) -> Graph:
        """The rewritten graph. The same object where nothing changes, or where a node that would be
        replaced or removed is wrong: lowering checks all nodes, and then reports this one."""
        changed = (self.graph.nodes[index] for index in self._changes)
        if not self._changes or not are_right(self.graph, changed):
            return self.graph
        if not strict:
            self._drop_refused()
        return self.graph.rewritten(self._changes) if self._changes else self.graph

    def _drop_refused(self) -> None:
        """Drops changes whose new nodes do not agree with their operators' declarations, with all
        changes that have tensors in common with those."""
        new = {index: node for index, node in self._changes.items() if node is not None}
        waiting = [index for index, node in new.items()
                   if not are_right(self.graph, (node, *node.nested()))]
        if not waiting:
            return
        sharing: dict[Tensor, list[int]] = defaultdict(list)
        for index in self._changes:
            for tensor in self._tensors_at(index):
                sharing[tensor].append(index)
        while waiting:
            index = waiting.pop()
            if index in self._changes:
                debug.say(1, f"a change is left out, its new node is wrong: {new.get(index)}")
                waiting += [other for tensor in self._tensors_at(index)
                            for other in sharing.pop(tensor, ())]
                del self._changes[index]

    def _tensors_at(self, index: int) -> set[Tensor]:
        """The tensors that a node reads or makes, before or after its change; no constants."""
        nodes = (self.graph.nodes[index], self._changes.get(index))
        return {tensor for node in nodes if node is not None
                for tensor in (*node.reads(), *node.outs) if tensor.constant is None}


def are_right(graph: Graph, nodes: Iterable[Node]) -> bool:
    """Whether nodes agree with the declarations of their operators."""
    try:
        for node in nodes:
            if node not in graph.checked:
                known(node.op).check(node)
    except (VkrtError, ArithmeticError, LookupError, TypeError, ValueError):
        return False
    return True


def checked(graph: Graph, before: Graph, name: str) -> Graph:
    """The graph that the pass `name` has made, with `Graph.checked`; `before` if it is wrong. The
    arguments, sizes and dtypes of new nodes have to be right; each tensor has to be made once,
    before nodes read it.

    Raises:
        InternalError: the graph is wrong, and the passes are `strict`; it names the pass and the
            node.
    """
    try:
        return _checked(graph, before)
    except VkrtError as error:
        if strict:
            raise InternalError(f"pass {name}: {error}") from error
        debug.say(1, f"pass {name} is left out: {error}")
        return before


def _checked(graph: Graph, before: Graph) -> Graph:
    old, arguments = set(before.nodes), dict(graph.checked)
    for node in graph.nodes:
        if node not in old:
            # Old nodes that go into another node have been checked (`Rewrite.result`).
            for nested in node.nested():
                if nested not in old:
                    known(nested.op).check(nested)
            arguments[node] = known(node.op).check(node)
    if (fault := next(order_faults(graph), None)) is not None:
        raise InternalError(fault)
    return replace(graph, checked=arguments)


def order_faults(graph: Graph) -> Iterator[str]:
    """Messages about tensors that are made twice, never made, or read before they are made."""
    made = {tensor for tensor in graph.inputs if isinstance(tensor, Tensor)}
    made.update(state.before for state in graph.states)
    for node in graph.nodes:
        for tensor in node.reads():
            # A constant without elements has no bytes in the file.
            if tensor not in made and tensor.constant is None and tensor.numel:
                yield f"{node} reads {tensor}, which nothing has made"
        for out in node.outs:
            if out in made:
                yield f"{node} makes {out}, which is there already"
        made.update(node.outs)
    for tensor in graph.results():
        if tensor not in made and tensor.constant is None:
            yield f"nothing makes {tensor}, a result of the method"
