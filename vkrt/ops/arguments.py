"""Reading a node's arguments: numbers of either kind, dimensions counted from either end."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from typing import Any

from vkrt.errors import UnsupportedError
from vkrt.graph.graph import Node
from vkrt.pte.coerce import as_int
from vkrt.work.tensor import Tensor

INT_MIN, INT_MAX = -(1 << 31), (1 << 31) - 1


def argument(node: Node, index: int, default: Any = None) -> Any:
    """Argument `index`; `default` where the node has fewer or Null there."""
    value = node.args[index] if index < len(node.args) else None
    return default if value is None else value


def tensor_argument(node: Node, index: int) -> Tensor:
    """Argument `index`, which has to be a tensor."""
    value = argument(node, index)
    if not isinstance(value, Tensor):
        raise UnsupportedError(f"{node}: argument {index} is {value!r}, vkrt needs a tensor there")
    return value


def ints(value: Any) -> tuple[int, ...]:
    """A list of ints as a tuple; one number counts as a list, None as an empty one."""
    if value is None:
        return ()
    if not isinstance(value, Sequence):
        value = (value,)
    return tuple(as_int(item) for item in value)


def dimension(value: Any, rank: int) -> int:
    """A dimension counted from the front; one of 0-d tensors is 0."""
    number = as_int(value)
    return number % max(rank, 1)


def dimensions(value: Any, rank: int) -> tuple[int, ...]:
    """A list of dimensions, sorted; all of them for None or an empty list."""
    chosen = ints(value) or range(rank)
    return tuple(sorted({dimension(d, rank) for d in chosen}))


def limited(value: float) -> int:
    """A number as a 32-bit int, infinities as the ends of the range."""
    if value >= INT_MAX:
        return INT_MAX
    return int(value) if value > INT_MIN else INT_MIN


def rounded(value: float, dtype: str) -> float:
    """A number in the precision of `dtype`, in which torch compares and divides by it."""
    if dtype != "float16":
        return value
    try:
        return struct.unpack("<e", struct.pack("<e", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)


def slice_end(value: Any, size: int, default: int) -> int:
    """An end of a slice: negative from the end, limited to the size."""
    if value is None:
        return default
    number = as_int(value)
    return min(max(number + size if number < 0 else number, 0), size)
