"""The bytes of constants, as far as a graph depends on them."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from vkrt.graph.graph import Graph
from vkrt.pte.span import Span, byte_view
from vkrt.work.tensor import Constant

FORMATS = {"float16": "<e", "float32": "<f", "float64": "<d", "uint8": "<B", "int8": "<b",
           "int32": "<i", "int64": "<q"}
# Bytes of a file that are compared at once: a whole number of elements
PIECE = 1 << 16


def only_number(data: Any, span: Span, dtype: str) -> float | None:
    """The number that bytes of a file are; None if they are several, or not in `FORMATS`."""
    layout = FORMATS.get(dtype)
    if layout is None or struct.calcsize(layout) != span.nbytes:
        return None
    with byte_view(data) as view:
        return float(struct.unpack_from(layout, view, span.offset)[0])


def pieces(constant: Constant, sources: Sequence[Any]) -> Iterator[bytes]:
    """The bytes of a constant; `sources` are those of the program, then of its data files."""
    view = memoryview(sources[constant.source])
    end = constant.offset + constant.nbytes
    for start in range(constant.offset, end, PIECE):
        yield bytes(view[start:min(start + PIECE, end)])


def is_zero(constant: Constant, sources: Sequence[Any]) -> bool:
    """Whether all bytes of a constant are zero; False where its file has fewer bytes."""
    end = constant.offset + constant.nbytes
    return end <= memoryview(sources[constant.source]).nbytes and not any(
        piece.strip(b"\0") for piece in pieces(constant, sources))


def mark_zeros(graph: Graph, sources: Sequence[Any]) -> None:
    """Sets `Constant.zeros` in the initial value of every state for which the file has only zeros:
    these bytes are not read again."""
    found: dict[tuple[int, int, int], bool] = {}  # Many states begin with the same bytes.
    for state in graph.states:
        constant = state.initial
        if constant.zeros:
            continue
        place = constant.source, constant.offset, constant.nbytes
        if place not in found:
            found[place] = is_zero(constant, sources)
        if found[place]:
            state.initial = replace(constant, offset=0, source=0, zeros=True)


def check_wide(graph: Graph, sources: Sequence[Any]) -> None:
    """Notes constants with integers beyond 32 bits in the graph's `unsupported`."""
    for tensor in dict.fromkeys(tensor for node in graph.nodes for tensor in node.tensors()):
        if tensor.constant is not None and tensor.constant.dtype == "int64" and _is_wide(
                tensor.constant, sources):
            graph.unsupported[f"integers beyond 32 bits in the constant {tensor.name}"] += 1


def _is_wide(constant: Constant, sources: Sequence[Any]) -> bool:
    import numpy as np

    numbers = np.frombuffer(sources[constant.source], "<i8", constant.nbytes // 8, constant.offset)
    return bool(numbers.size) and not -1 << 31 <= numbers.min() <= numbers.max() < 1 << 31
