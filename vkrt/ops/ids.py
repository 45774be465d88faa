"""Which inputs of a program are indices, and what they may hold.

Kernels never read beyond a tensor: they take the nearest row. A wrong index would go unnoticed, so
the indices that a program gets as an input are compared with the tensor's size before a run, as
ExecuTorch's own kernels do when they meet them. Indices that a program computes are not checked.
"""

from __future__ import annotations

from vkrt.graph.graph import Graph
from vkrt.ops.registry import known
from vkrt.work.limits import IndexLimit


def index_limits(graph: Graph) -> tuple[IndexLimit, ...]:
    """What the inputs that are indices may hold, at the sizes of a graph."""
    inputs = {id(value): number for number, value in enumerate(graph.inputs)}
    limits = []
    for node in graph.nodes:
        operator = known(node.op)
        if operator.indices is None:
            continue
        for indices in operator.indices(*operator.schema.read(node.args)):
            number = inputs.get(id(indices.tensor))
            if number is not None:
                limits.append(IndexLimit(number, -indices.size if indices.from_end else 0,
                                         indices.size - 1, str(node)))
    return tuple(limits)
