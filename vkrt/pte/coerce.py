"""What an operator's declaration may read from a value.

The exporter stores each distinct number once, and to Python 1 == 1.0: an Int may stand where the
operator's schema has a float, and a Double where it has an int. Everything else is a FormatError.
"""

from math import inf
from typing import NoReturn

from vkrt.errors import FormatError
from vkrt.pte.span import show
from vkrt.pte.values import kind_of

# 3.4028235677973366e38, half way from float32's largest number to 2^128: from here on float32
# rounds to infinity. Fused clamps write DBL_MAX for "no bound".
FLOAT_LIMIT = float.fromhex("0x1.ffffffp+127")


def _refuse(what: str, expected: str, value: object) -> NoReturn:
    raise FormatError(f"{what}: expected {expected}, got {kind_of(value)} {show(value)}")


def as_int(value: object, what: str = "argument") -> int:
    """An Int, or a Double without fraction."""
    if isinstance(value, int) and type(value) is not bool:
        return value
    if type(value) is float and value.is_integer():
        return int(value)
    _refuse(what, "an Int", value)


def as_float(value: object, what: str = "argument") -> float:
    """A Double or an Int; one that float32 would round to infinity is infinity.

    Other numbers stay as they are, even if float32 does not have them: `torch.finfo(...).min`,
    which attention masks are made of, stays finite.
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
