"""What an operator's declaration may read from a value.

The exporter stores each distinct number once, and to Python 1 == 1.0: an Int may stand where the
operator's schema has a float, and a Double where it has an int. Lists of ints may be literal or
refer to values. Everything else is a FormatError.
"""

from collections.abc import Callable, Sequence
from math import inf
from typing import NoReturn, TypeVar

from vkrt.errors import FormatError
from vkrt.pte import delegate, plan
from vkrt.pte.span import show
from vkrt.pte.values import BoolList, DoubleList, kind_of

T = TypeVar("T")

# 3.4028235677973366e38, half way from float32's largest number to 2^128: what float32 rounds to
# infinity begins here. Fused clamps write DBL_MAX for "no bound".
FLOAT_LIMIT = float.fromhex("0x1.ffffffp+127")


def _refuse(what: str, expected: str, value: object) -> NoReturn:
    raise FormatError(f"{what}: expected {expected}, got {kind_of(value)} {show(value)}")


def as_int(value: object, what: str = "argument") -> int:
    """An Int, or a Double without fraction."""
    if type(value) is int:
        return value
    if type(value) is float and value.is_integer():
        return int(value)
    _refuse(what, "an Int", value)


def as_float(value: object, what: str = "argument") -> float:
    """A Double or an Int; one that float32 would round to infinity is infinity.

    The others stay as they are, also between two numbers of float32: `torch.finfo(...).min`, which
    attention masks are made of, is finite.
    """
    if type(value) is not float and type(value) is not int:
        _refuse(what, "a Double", value)
    if value >= FLOAT_LIMIT:
        return inf
    if value <= -FLOAT_LIMIT:
        return -inf
    return float(value)


def as_bool(value: object, what: str = "argument") -> bool:
    if type(value) is bool:
        return value
    _refuse(what, "a Bool", value)


def as_str(value: object, what: str = "argument") -> str:
    if type(value) is str:
        return value
    _refuse(what, "a String", value)


def optional(read: Callable[..., T], value: object, *args: object) -> T | None:
    """None for Null, otherwise what `read` makes of the value."""
    return None if value is None else read(value, *args)


def _items(value: object, values: Sequence[object] | None, what: str,
           expected: str) -> tuple[object, ...]:
    """The items of any list; ids are looked up in `values`."""
    if isinstance(value, (list, tuple)):  # resolved by the graph
        return tuple(value)
    if isinstance(value, (delegate.IntList, DoubleList, BoolList)):
        return value.items
    ids: tuple[int, ...] | None = None
    if isinstance(value, delegate.ValueList):
        ids = value.ids
    elif isinstance(value, plan.IntList):
        ids = value.items
    if ids is None or values is None:
        _refuse(what, expected, value)
    return tuple(values[item] for item in ids)


def as_int_list(value: object, values: Sequence[object] | None = None,
                what: str = "argument") -> tuple[int, ...]:
    """Ints of an IntList, of a DoubleList without fractions, or of ids with all of `values`.

    A list that contains a SymInt has no fixed ints and is refused.
    """
    items = _items(value, values, what, "an IntList")
    return tuple(as_int(item, what) for item in items)


def as_float_list(value: object, values: Sequence[object] | None = None,
                  what: str = "argument") -> tuple[float, ...]:
    items = _items(value, values, what, "a DoubleList")
    return tuple(as_float(item, what) for item in items)


def as_bool_list(value: object, values: Sequence[object] | None = None,
                 what: str = "argument") -> tuple[bool, ...]:
    items = _items(value, values, what, "a BoolList")
    return tuple(as_bool(item, what) for item in items)
