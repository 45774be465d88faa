"""Graphs of a few nodes: made, lowered and run, for tests of what is fused."""

from __future__ import annotations

import numpy as np

from vkrt.graph.graph import Graph, Node
from vkrt.memory.source import Source
from vkrt.method.method import Method
from vkrt.ops.lowering import lower
from vkrt.plan.options import LoadOptions
from vkrt.work.records import Dispatch
from vkrt.work.target import Target
from vkrt.work.tensor import Tensor

SIZES = (1, 6, 5, 7)


def value(*sizes: int, dtype: str = "float32") -> Tensor:
    return Tensor(sizes, dtype, name="input 0")


def graph_of(x: Tensor, nodes: list[Node], *more: Tensor) -> Graph:
    """The graph that gives the last node's result, and others."""
    return Graph("network", [x], [nodes[-1].outs[0], *more], nodes).finish()


def kernels(graph: Graph, among=("unary", "binary"), **target) -> list[str]:
    """The names of the kernels, among these, that the graph becomes."""
    names = [step.shader.partition(".")[0] for step in lower(graph, Target(**target)).steps
             if isinstance(step, Dispatch)]
    return [name for name in names if name in among]


def result_of(graph: Graph, array: np.ndarray, storage: str, device, data: bytes = b"",
              **options) -> np.ndarray:
    """The first result of a graph, whose constants are in `data`."""
    method = Method(graph, [Source.wrap(data)], device,
                    options=LoadOptions(storage=storage, **options))
    try:
        return method.execute([array])[0]
    finally:
        method.close()
