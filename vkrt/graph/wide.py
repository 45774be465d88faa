"""Constants with integers of 64 bits, of which the device keeps 32."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from vkrt.graph.graph import Graph
from vkrt.work.tensor import Constant


def check_wide(graph: Graph, sources: Sequence[Any]) -> None:
    """Adds the constants that do not fit into 32 bits to the graph's `unsupported`.

    Args:
        sources: the bytes of the program, then those of its data files.
    """
    for tensor in dict.fromkeys(tensor for node in graph.nodes for tensor in node.tensors()):
        constant = tensor.constant
        if constant is None or constant.dtype != "int64":
            continue
        if _is_wide(sources[constant.source], constant):
            graph.unsupported[f"integers beyond 32 bits in the constant {tensor.name}"] += 1


def _is_wide(source: Any, constant: Constant) -> bool:
    """Whether a constant of int64 has elements that do not fit into 32 bits."""
    import numpy as np

    numbers = np.frombuffer(source, "<i8", constant.nbytes // 8, constant.offset)
    return bool(numbers.size) and not -1 << 31 <= numbers.min() <= numbers.max() < 1 << 31
