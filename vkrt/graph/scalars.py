"""Numbers that a program holds as tensors of one element."""

from __future__ import annotations

import struct
from typing import Any

from vkrt.pte.span import Span, byte_view

FORMATS = {"float16": "<e", "float32": "<f", "float64": "<d", "uint8": "<B", "int8": "<b",
           "int32": "<i", "int64": "<q"}


def only_number(data: Any, span: Span, dtype: str) -> float | None:
    """The number that bytes of a file are; None where they are several numbers, or of a dtype that
    `FORMATS` does not have.

    Args:
        data: the bytes of the file, in which the span lies.
    """
    layout = FORMATS.get(dtype)
    if layout is None or struct.calcsize(layout) != span.nbytes:
        return None
    with byte_view(data) as view:
        return float(struct.unpack_from(layout, view, span.offset)[0])
