"""Functions of numbers outside of delegates.

Results are those of Python, in which programs are written. ExecuTorch's portable runtime differs
only in the remainder of a negative number, which it computes as C does: padding to a multiple by
`-size % 8` is wrong there.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

Number = int | float


def _promoted(choose: Callable[[Number, Number], Number]) -> Callable[[Number, Number], Number]:
    def chosen(a: Number, b: Number) -> Number:
        return float(choose(a, b)) if float in (type(a), type(b)) else choose(a, b)
    return chosen


# Of two numbers
BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "floordiv": operator.floordiv,
    "truediv": operator.truediv,
    "mod": operator.mod,
    "eq": operator.eq,
    "gt": operator.gt,
    "lt": operator.lt,
    "ge": operator.ge,
    "le": operator.le,
    "sym_max": _promoted(max),
    "sym_min": _promoted(min),
}
# Of one number
UNARY: dict[str, Callable[[Any], Any]] = {
    "neg": operator.neg,
    "sym_float": float,
    "ceil": math.ceil,
    "round": round,
    "trunc": math.trunc,
}
FUNCTIONS = BINARY | UNARY
COMPARISONS = ("eq", "gt", "lt", "ge", "le")
