"""What passes are made of: a name, a rewrite of a graph, and the checks of what comes out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from vkrt.errors import InternalError, VkrtError
from vkrt.graph.graph import Graph, Node
from vkrt.ops.registry import known
from vkrt.passes.matching import Uses
from vkrt.work.target import Target
from vkrt.work.tensor import Tensor


@dataclass(frozen=True)
class Pass:
    """One rewrite of graphs.

    Attributes:
        name: in options and messages.
        summary: what it does, in a line.
        run: gets a graph and the target; returns the same object where nothing changed.
        roots: only graphs with a node of one of these operators are changed; empty for any.
    """

    name: str
    summary: str
    run: Callable[[Graph, Target], Graph]
    roots: frozenset[str] = frozenset()


class Rewrite:
    """A graph, and the nodes that shall be others.

    Attributes:
        graph: as it is.
    """

    def __init__(self, graph: Graph):
        self.graph = graph
        self._uses: Uses | None = None
        self._changes: dict[int, Node | None] = {}

    @property
    def uses(self) -> Uses:
        """Who makes and who reads the graph's tensors."""
        if self._uses is None:
            self._uses = Uses(self.graph)
        return self._uses

    def node(self, index: int) -> Node:
        """The node of this index, as it shall be."""
        return self._changes.get(index) or self.graph.nodes[index]

    def is_free(self, *indices: int) -> bool:
        """Whether nothing has been said of these nodes."""
        return self._changes.keys().isdisjoint(indices)

    def replace(self, index: int, node: Node, gone: Iterable[int] = ()) -> None:
        """Puts a node in the place of another one; it does what those of `gone` did, too."""
        self._changes[index] = node
        self.remove(gone)

    def remove(self, indices: Iterable[int]) -> None:
        """Takes nodes away whose results nothing reads."""
        self._changes |= dict.fromkeys(indices)

    def result(self) -> Graph:
        """The rewritten graph; the same object where nothing was said, or where a node that would
        go is wrong: lowering, which checks all that it gets, says so then."""
        return self.draft() if self._is_right() else self.graph

    def draft(self) -> Graph:
        """The same, whatever the nodes are that would go: to look at, and not to be lowered."""
        return self.graph.rewritten(self._changes) if self._changes else self.graph

    def _is_right(self) -> bool:
        return are_right(self.graph, (self.graph.nodes[index] for index in self._changes))


def are_right(graph: Graph, nodes: Iterable[Node]) -> bool:
    """Whether nodes are as their operators' declarations say."""
    try:
        for node in nodes:
            if node not in graph.checked:
                known(node.op).check(node)
    except (VkrtError, ArithmeticError, LookupError, TypeError, ValueError):
        return False
    return True


def checked(graph: Graph, before: Graph, name: str) -> Graph:
    """What a pass has made of a graph, with `Graph.checked`: the arguments, sizes and dtypes of the
    nodes that are new are right, each tensor is made once, and before nodes read it.

    Args:
        name: of the pass.

    Raises:
        InternalError: naming the pass and the node.
    """
    old, arguments = set(before.nodes), dict(graph.checked)
    for node in graph.nodes:
        if node not in old:
            try:
                # What goes into another node has been checked before (`Rewrite.result`).
                for nested in node.nested():
                    if nested not in old:
                        known(nested.op).check(nested)
                arguments[node] = known(node.op).check(node)
            except VkrtError as error:
                raise InternalError(f"pass {name}: {error}") from error
    if (fault := next(order_faults(graph), None)) is not None:
        raise InternalError(f"pass {name}: {fault}")
    return replace(graph, checked=arguments)


def order_faults(graph: Graph) -> Iterator[str]:
    """What is made twice, or read before it is made."""
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
