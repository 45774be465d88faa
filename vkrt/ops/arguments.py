"""Arguments of nodes as lowerings use them: dimensions from the front, numbers of a dtype."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence

INT_MIN, INT_MAX = -(1 << 31), (1 << 31) - 1


def dimension(dim: int, rank: int) -> int:
    """A dimension counted from the front; 0 for any dimension of a 0-d tensor."""
    return dim % max(rank, 1)


def dimensions(dims: Sequence[int] | None, rank: int) -> tuple[int, ...]:
    """A list of dimensions, sorted; all of them for None or an empty list."""
    return tuple(sorted({dimension(d, rank) for d in dims or range(rank)}))


def limited(value: float) -> int:
    """A number as a 32-bit int, infinities as the ends of the range."""
    if value >= INT_MAX:
        return INT_MAX
    return int(value) if value > INT_MIN else INT_MIN


def rounded(value: float, dtype: str) -> float:
    """A number rounded to `dtype`: torch compares with it and divides by it in that precision."""
    if dtype != "float16":
        return value
    try:
        return struct.unpack("<e", struct.pack("<e", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)


def slice_end(end: int | None, size: int, default: int) -> int:
    """An end of a slice, limited to the size; a negative one counts from the end."""
    if end is None:
        return default
    return min(max(end + size if end < 0 else end, 0), size)
