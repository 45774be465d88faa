"""States that begin with zeros: their bytes in the file say nothing and are not read again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from vkrt.graph.graph import Graph
from vkrt.work.tensor import Constant

# Bytes of a file that are compared with zeros at once
PIECE = 1 << 16


def mark_zeros(graph: Graph, sources: Sequence[Any]) -> None:
    """Sets `Constant.zeros` in the initial value of every state for which the file has only zeros.

    Args:
        sources: the bytes of the program, then those of its data files.
    """
    found: dict[tuple[int, int, int], bool] = {}  # Many states begin with the same bytes.
    for state in graph.states:
        constant = state.initial
        if constant.zeros:
            continue
        place = constant.source, constant.offset, constant.nbytes
        if place not in found:
            found[place] = _is_zero(sources[constant.source], constant)
        if found[place]:
            state.initial = replace(constant, offset=0, source=0, zeros=True)


def _is_zero(source: Any, constant: Constant) -> bool:
    """Whether bytes of a file are all zero; False where the file has fewer."""
    view = memoryview(source)[constant.offset:constant.offset + constant.nbytes]
    return len(view) == constant.nbytes and not any(
        bytes(view[start:start + PIECE]).strip(b"\0")
        for start in range(0, constant.nbytes, PIECE))
