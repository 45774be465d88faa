"""A graph as text: a line for each node, tensors by numbers."""

from __future__ import annotations

from typing import Any

from vkrt.graph.graph import Graph, Node
from vkrt.graph.symbols import RuntimeScalar
from vkrt.ops.attributes import Permutation
from vkrt.work.tensor import Tensor


def text_of(graph: Graph) -> str:
    """A line for each node: its number in the graph before passes, the tensors that it makes, its
    operator with the arguments and attributes, and where it stands in the file. %N is a tensor that
    is computed or given, cN a constant of the file."""
    names = _Names()
    inputs = ", ".join(names.typed(value) for value in graph.inputs)
    lines = [f"inputs {inputs}"]
    lines += [f"state {names.typed(state.before)} -> {names(state.after)}"
              for state in graph.states]
    for index, node in enumerate(graph.nodes):
        args = ", ".join(map(names, node.args))
        outs = ", ".join(map(names.typed, node.outs))
        predicate = "".join(f" if {names(condition)} is {wanted}"
                            for condition, wanted in node.predicate)
        does = ", ".join(f"{name}={names(value)}" for name, value in node.attributes.items())
        label = f"  # {node.label}" if node.label else ""
        lines.append(f"{graph.number_of(index):5} {outs} = {node.op}({args})"
                     f"{' {' + does + '}' if does else ''}{predicate}{label}")
    return "\n".join([*lines, f"outputs {', '.join(map(names, graph.outputs))}"])


class _Names:
    def __init__(self) -> None:
        self._names: dict[Tensor, str] = {}

    def __call__(self, value: Any) -> str:
        """An argument of a node, or an input or output of the graph, as text."""
        if isinstance(value, Tensor):
            if value.constant is not None and value not in self._names:
                return self.typed(value)
            return self._name(value)
        if isinstance(value, Permutation):
            return self(value.views)
        if isinstance(value, Node):
            return f"{value.op}({', '.join(map(self, value.args))})"
        if isinstance(value, RuntimeScalar):
            return f"{self(value.tensor)}[{value.read.element}]"
        if isinstance(value, (list, tuple)):
            return f"[{', '.join(map(self, value))}]"
        return repr(value)

    def typed(self, value: Any) -> str:
        if not isinstance(value, Tensor):
            return self(value)
        return f"{self._name(value)}:{value.dtype}{list(value.sizes)}"

    def _name(self, tensor: Tensor) -> str:
        kind = "%" if tensor.constant is None else "c"
        return self._names.setdefault(tensor, f"{kind}{len(self._names)}")
