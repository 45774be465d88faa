"""Graphs of a few nodes: made, lowered and run, for tests of what is fused."""

import numpy as np
from graph_maker import Constants, new_node
from harness import normal
from support import execute

from vkrt.graph.graph import Graph, Node
from vkrt.lowering.lowering import lower
from vkrt.passes.pipeline import run_passes
from vkrt.work.command_list import CommandList
from vkrt.work.records import Dispatch
from vkrt.work.target import Target
from vkrt.work.tensor import Tensor

SIZES = (1, 6, 5, 7)


def rewritten(graph: Graph, **target) -> Graph:
    """What passes make of a graph; the same object where nothing is to be fused."""
    return run_passes(graph, Target(**target))


def shaders_of(work: CommandList) -> list[str]:
    return [step.shader for step in work.steps if isinstance(step, Dispatch)]


def families_of(work: CommandList) -> list[str]:
    """The shaders' names without storages, dtypes and features."""
    return [name.partition(".")[0] for name in shaders_of(work)]


def kernels(graph: Graph, among=("unary", "binary"), **target) -> list[str]:
    """The names of the kernels, among these, that the graph becomes."""
    return [name for name in families_of(lower(graph, Target(**target))) if name in among]


def check_lowered_alike(first: Graph, second: Graph, target: Target | None = None) -> None:
    """Fails unless the second graph has the same steps with the first one's command list as without
    it."""
    target = target or Target()
    lists = lower(second, target, lower(first, target)), lower(second, target)
    again, anew = ([(step.shader, step.params) for step in work.steps] for work in lists)
    assert again == anew


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


def layer(kind: str, x: Tensor, columns: int, constants: Constants, bias: bool = False,
          seed: int = 1, group: int | None = None) -> Node:
    """A linear layer with so many columns.

    Args:
        kind: of its weights: "float", "groups" (4 bits with scales for groups, by default one
            group) or "channels" (4 bits with a scale for each row).
    """
    depth = x.sizes[-1]
    group = group or depth

    def floats(*sizes: int, more: int = 0) -> Tensor:
        return constants.add(normal(*sizes, seed=seed + more).astype(x.dtype))

    vector = floats(columns, more=2) if bias else None
    if kind == "float":
        return new_node("aten.linear.default", x, floats(columns, depth), vector)
    words = constants.add(
        np.random.default_rng(seed).integers(0, 256, (columns, depth // 2)).astype(np.uint8))
    if kind == "channels":
        return new_node("et_vk.linear_qcs4w.default", x, words, floats(columns, more=3))
    scales = floats(depth // group, -(-columns // 4) * 4, more=3)
    return new_node("et_vk.linear_q4gsw.default", x, words, scales, group, vector)
