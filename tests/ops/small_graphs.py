"""Graphs of a few nodes: made, lowered and run, for tests of what is fused."""

from __future__ import annotations

import numpy as np
from harness import normal
from support import execute

from vkrt.graph.graph import Graph, Node
from vkrt.lowering.lowering import lower
from vkrt.passes.pipeline import run_passes
from vkrt.work.records import Dispatch
from vkrt.work.target import Target
from vkrt.work.tensor import Constant, Tensor

SIZES = (1, 6, 5, 7)


def value(*sizes: int, dtype: str = "float32") -> Tensor:
    return Tensor(sizes, dtype, name="input 0")


def graph_of(x: Tensor, nodes: list[Node], *more: Tensor) -> Graph:
    """The graph that gives the last node's result, and others."""
    return Graph("network", [x], [nodes[-1].outs[0], *more], nodes).finish()


def rewritten(graph: Graph, **target) -> Graph:
    """What passes make of a graph; the same object where nothing is to be fused."""
    return run_passes(graph, Target(**target))


def kernels(graph: Graph, among=("unary", "binary"), **target) -> list[str]:
    """The names of the kernels, among these, that the graph becomes."""
    names = [step.shader.partition(".")[0] for step in lower(graph, Target(**target)).steps
             if isinstance(step, Dispatch)]
    return [name for name in names if name in among]


def results_of(graph: Graph, array: np.ndarray, storage: str, device, data: bytes = b"",
               **options) -> list[np.ndarray]:
    """The results of a graph, whose constants are in `data`."""
    return execute(graph, data, [array], device, storage=storage, **options)


def result_of(*args, **options) -> np.ndarray:
    """The first of `results_of`."""
    return results_of(*args, **options)[0]


def fused_and_apart(graph: Graph, array: np.ndarray, storage: str, device, data: bytes = b"",
                    **options) -> list[np.ndarray]:
    """The first result of a graph with fusions, and without."""
    return [result_of(graph, array, storage, device, data, fusions=fusions, **options)
            for fusions in ("on", "off")]


def strange(*sizes: int, scale: float = 1.0) -> np.ndarray:
    """Numbers of which the first four are infinities, NaN and -0."""
    array = normal(*sizes, scale=scale)
    array.flat[:4] = np.inf, -np.inf, np.nan, -0.0
    return array


class Constants:
    """Constants of a graph in the making, and their bytes."""

    def __init__(self) -> None:
        self.data = bytearray()

    def add(self, array: np.ndarray) -> Tensor:
        self.data.extend(bytes(-len(self.data) % 16))
        self.data.extend(array.tobytes())
        return Tensor(array.shape, str(array.dtype), constant=Constant(
            len(self.data) - array.nbytes, array.nbytes, str(array.dtype)))


def layer(kind: str, x: Tensor, out: Tensor, constants: Constants, bias: bool = False,
          seed: int = 1, group: int | None = None) -> Node:
    """A linear layer.

    Args:
        kind: of its weights: "float", "groups" (4 bits with scales for groups, by default one
            group) or "channels" (4 bits with a scale for each row).
    """
    columns, depth = out.sizes[-1], x.sizes[-1]
    group = group or depth

    def floats(*sizes: int, more: int = 0) -> Tensor:
        return constants.add(normal(*sizes, seed=seed + more).astype(x.dtype))

    vector = floats(columns, more=2) if bias else None
    if kind == "float":
        return Node("aten.linear.default", (x, floats(columns, depth), vector), (out,))
    words = constants.add(
        np.random.default_rng(seed).integers(0, 256, (columns, depth // 2)).astype(np.uint8))
    if kind == "channels":
        return Node("et_vk.linear_qcs4w.default", (x, words, floats(columns, more=3)), (out,))
    scales = floats(depth // group, -(-columns // 4) * 4, more=3)
    return Node("et_vk.linear_q4gsw.default", (x, words, scales, group, vector), (out,))
