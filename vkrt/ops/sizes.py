"""Sizes of results: what many operators' rules need.

A rule is a function that gets a node's arguments, read by the operator's schema and with sizes in
the place of tensors, and returns the sizes of each result.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from vkrt.errors import FormatError, UnsupportedError

Sizes = tuple[int, ...]


def fail(name: str, text: str) -> NoReturn:
    """Refuses a value of the argument `name` that no program that torch has run can have."""
    raise FormatError(f"argument '{name}': {text}")


def unsupported(name: str, text: str) -> NoReturn:
    """Refuses what torch takes as the argument `name` and vkrt does not."""
    raise UnsupportedError(f"argument '{name}': {text}")


def same(x: Sizes, *_others: Any) -> tuple[Sizes, ...]:
    """Results as large as the first argument."""
    return (x,)


def together(x: Sizes, y: Sizes, *_others: Any) -> tuple[Sizes, ...]:
    """Results as large as two tensors broadcast."""
    return (broadcast(x, y),)


def wrap(dim: int, rank: int, name: str = "dim") -> int:
    """A dimension counted from the front. To torch a 0-d tensor has the dimensions 0 and -1."""
    rank = max(rank, 1)
    if not -rank <= dim < rank:
        fail(name, f"expected a dimension of {-rank} to {rank - 1}, got {dim}")
    return dim % rank


def wrap_all(dims: Sequence[int] | None, rank: int, name: str = "dims") -> set[int]:
    """Dimensions counted from the front, each at most once; all of them for None."""
    if dims is None:
        return set(range(rank))
    wrapped = {wrap(dim, rank, name) for dim in dims}
    if len(wrapped) != len(dims):
        fail(name, f"a dimension stands twice in {list(dims)}")
    return wrapped


def need_rank(sizes: Sizes, ranks: int | tuple[int, ...], name: str) -> None:
    """Refuses a tensor whose rank is not one of `ranks`."""
    allowed = (ranks,) if isinstance(ranks, int) else ranks
    if len(sizes) not in allowed:
        fail(name, f"expected a tensor of rank {' or '.join(map(str, allowed))}, got sizes "
             f"{list(sizes)}")


def need_least_rank(sizes: Sizes, least: int, name: str = "self") -> None:
    """Refuses a tensor of fewer dimensions."""
    if len(sizes) < least:
        fail(name, f"expected at least rank {least}, got sizes {list(sizes)}")


def need_matrix(x: Sizes, weight: Sizes, name: str) -> None:
    """Refuses a weight that is no matrix [N, K] for an input [.., K]."""
    need_rank(weight, 2, name)
    if not x or x[-1] != weight[1]:
        fail(name, f"expected sizes [N, K] for an input [.., K], got {list(weight)} for {list(x)}")


def need_sizes(sizes: Sizes | None, expected: Sequence[int], name: str) -> None:
    """Refuses a tensor with other sizes; None (an optional tensor) passes."""
    if sizes is not None and sizes != tuple(expected):
        fail(name, f"expected sizes {list(expected)}, got {list(sizes)}")


def at_least(value: int, minimum: int, name: str) -> int:
    """Refuses a smaller number."""
    if value < minimum:
        fail(name, f"expected at least {minimum}, got {value}")
    return value


def per_dimension(values: Sequence[int], count: int, name: str, minimum: int) -> Sizes:
    """One number per spatial dimension, each at least `minimum`; a single one counts for all."""
    if len(values) == 1:
        values = (values[0],) * count
    if len(values) != count:
        fail(name, f"expected {count} numbers, got {list(values)}")
    return tuple(at_least(value, minimum, name) for value in values)


def broadcast(*shapes: Sizes) -> Sizes:
    """The sizes to which numpy broadcasts all of `shapes`."""
    rank = max(map(len, shapes), default=0)
    result = [1] * rank
    for shape in shapes:
        for place, size in enumerate(shape, rank - len(shape)):
            if size != 1:
                if result[place] not in (1, size):
                    raise FormatError("sizes cannot be broadcast: "
                                      + ", ".join(str(list(s)) for s in shapes))
                result[place] = size
    return tuple(result)


def need_broadcast(sizes: Sizes | None, target: Sizes, name: str) -> None:
    """Refuses a tensor that does not broadcast to `target` without enlarging it; None passes."""
    if sizes is not None and (
            len(sizes) > len(target)
            or any(a not in (1, b) for a, b in zip(sizes[::-1], target[::-1], strict=False))):
        fail(name, f"expected sizes that broadcast to {list(target)}, got {list(sizes)}")
