"""Arithmetic of programs on numbers outside of their delegates (`executorch_prim`).

Numbers of the file are computed here and now, with the results of the portable runtime. What
depends on sizes or on numbers that inputs hold becomes a `Symbol`.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

from vkrt.graph.symbols import ARITHMETIC, Symbol, bounded, compute

Number = int | float

SIZE = "aten::sym_size.int"
NUMEL = "aten::sym_numel"
VIEW = "executorch_prim::et_view"
COPY_INDEX = "executorch_prim::et_copy_index.tensor"


def _floor_divide(a: Number, b: Number) -> Number:
    return a // b if isinstance(a, int) and isinstance(b, int) else float(math.floor(a / b))


def _remainder(a: Number, b: Number) -> Number:
    """As C computes it: with the sign of a."""
    if not isinstance(a, int) or not isinstance(b, int):
        return math.fmod(a, b)
    rest = abs(a) % abs(b)
    return -rest if a < 0 else rest


# Of two numbers
BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "floordiv": _floor_divide,
    "truediv": operator.truediv,
    "mod": _remainder,
    "eq": operator.eq,
    "gt": operator.gt,
    "lt": operator.lt,
    "ge": operator.ge,
    "le": operator.le,
    "sym_max": max,
    "sym_min": min,
}
# Of one number
UNARY: dict[str, Callable[[Any], Any]] = {
    "neg": operator.neg,
    "sym_float": float,
    "ceil": math.ceil,
    "round": round,
    "trunc": math.trunc,
}


def prim(name: str) -> str:
    """The function of an operator on numbers: "add" of "executorch_prim::add.Scalar"; "" if it is
    none."""
    space, _, rest = name.partition("::")
    function = rest.partition(".")[0]
    known = space == "executorch_prim" and (function in BINARY or function in UNARY)
    return function if known else ""


def evaluate(function: str, args: tuple[Any, ...], symbol: Callable[..., Symbol]) -> Any:
    """A function of numbers.

    Args:
        function: of `prim`.
        args: numbers, or `Symbol`s among them.
        symbol: makes a `Symbol` of its kind, arguments and bound.

    Returns:
        A number or a `Symbol`; None where vkrt does not compute this with symbols.

    Raises:
        ArithmeticError, ValueError: a division by 0, an integer beyond 64 bits or of no number.
    """
    if any(isinstance(arg, Symbol) for arg in args):
        if function not in ARITHMETIC or any(isinstance(bounded(arg), float) for arg in args):
            return None
        try:
            bound = compute(function, bounded(args[0]), bounded(args[1]))
        except ArithmeticError:
            bound = 0  # the sizes in the file are bounds, which no call may have together
        return symbol(function, args, bound)
    result = (BINARY[function] if function in BINARY else UNARY[function])(*args)
    if isinstance(result, int) and not -1 << 63 <= result < 1 << 63:
        raise OverflowError(f"{function} of {' and '.join(map(str, args))} is beyond 64 bits")
    return result
