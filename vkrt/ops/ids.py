"""Which inputs of a program are indices, and what they may hold.

Kernels never read beyond a tensor: they take the nearest row. A wrong index would go unnoticed, so
the indices that a program gets as an input are compared with the tensor's size before a run, as
ExecuTorch's own kernels do when they meet them. Indices that a program computes are not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from vkrt.graph.graph import Graph
from vkrt.graph.symbols import IndexLimit
from vkrt.hints import Any
from vkrt.ops.arguments import dimension
from vkrt.ops.registry import known
from vkrt.work.tensor import Tensor

# (indices, the size they go into, whether negative ones count from its end)
Found = Iterator[tuple[Any, int, bool]]


def _rows(weight: Tensor, indices: Tensor, *_training: Any) -> Found:
    yield indices, weight.sizes[0], False


def _rows_q4(weight: Tensor, _scales: Any, _group: int, indices: Tensor, *_others: Any) -> Found:
    yield indices, weight.sizes[0], False


def _along(x: Tensor, dim: int, index: Tensor, *_others: Any) -> Found:
    if x.rank:
        yield index, x.sizes[dimension(dim, x.rank)], False


def _by_dimension(x: Tensor, indices: list[Tensor | None], *_others: Any) -> Found:
    for size, index in zip(x.sizes, indices):
        yield index, size, True


OPERATORS: dict[str, Callable[..., Found]] = {
    "aten.embedding.default": _rows,
    "et_vk.embedding_q4gsw.default": _rows_q4,
    "aten.index_select.default": _along,
    "aten.gather.default": _along,
    "aten.index.Tensor": _by_dimension,
    "aten.index_put.default": _by_dimension,
}


def index_limits(graph: Graph) -> tuple[IndexLimit, ...]:
    """What inputs may hold that are indices, at the sizes of a graph."""
    inputs = {id(value): number for number, value in enumerate(graph.inputs)}
    found = []
    for node in graph.nodes:
        if node.op not in OPERATORS:
            continue
        for indices, size, wraps in OPERATORS[node.op](*known(node.op).schema.read(node.args)):
            if id(indices) in inputs and indices.dtype == "int32":
                found.append(IndexLimit(inputs[id(indices)], -size if wraps else 0, size - 1,
                                        str(node)))
    return tuple(found)
