"""Numbers among the arguments of nodes, as kernels of a dtype take them."""

from __future__ import annotations

import math
import struct

INT_MIN, INT_MAX = -(1 << 31), (1 << 31) - 1


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
