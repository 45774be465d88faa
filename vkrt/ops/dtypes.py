"""Dtype rules: which dtypes an operator's tensors may have together, and its results then.

A shader is chosen by the dtypes of some of a node's operands: a file in which another one differs
would make it read past the end of that. So every declaration has a rule; where the file decides, as
in a conversion, that is `ANY`.

The device has no 64-bit numbers: those are 32 bits wide there (see `vkrt.work.tensor`). And with
the exporter's `force_fp16` every float is a half. So wherever torch makes floats of integers, both
floats are right.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from vkrt.errors import UnsupportedError
from vkrt.work.tensor import Tensor

# The dtypes that a result may have; None: any
Allowed = frozenset[str] | None

FLOATS = frozenset({"float32", "float16"})
TRUTH, INT32 = frozenset({"bool"}), frozenset({"int32"})


@dataclass(frozen=True)
class DtypeRule:
    """Which dtypes the first result may have.

    Attributes:
        allowed: gets a node's arguments; raises UnsupportedError where vkrt does not have the
            operator for tensors of these dtypes.
        convert: how the tensors of a portable kernel are brought to dtypes that the operator takes,
            see `vkrt.graph.kernels.Kernel`.
    """

    allowed: Callable[[Sequence[Any]], Allowed]
    convert: str = "own"


def _rule(convert: str) -> Callable[[Callable[[Sequence[Any]], Allowed]], DtypeRule]:
    return lambda function: DtypeRule(function, convert)


def _tensors(args: Sequence[Any]) -> list[Tensor]:
    lists = (arg if isinstance(arg, (list, tuple)) else (arg,) for arg in args)
    return [item for items in lists for item in items if isinstance(item, Tensor)]


def _category(dtype: str) -> int:
    """0 of bools, 1 of integers, 2 of floats: torch promotes to the highest."""
    return 2 if dtype in FLOATS else int(dtype != "bool")


def _refuse(dtypes: Iterable[str]) -> UnsupportedError:
    return UnsupportedError(f"tensors of {' and '.join(sorted(dtypes))}")


def _promoted(args: Sequence[Any]) -> frozenset[str]:
    """A dtype of the highest category among the tensors.

    torch takes the wider one, unless only 0-d tensors have it; a delegate may know those as 1-d
    ones, so each dtype of the category may be right.
    """
    dtypes = {tensor.dtype for tensor in _tensors(args)}
    highest = max(map(_category, dtypes))
    return frozenset(dtype for dtype in dtypes if _category(dtype) == highest)


def _floats(args: Sequence[Any]) -> frozenset[str]:
    return _promoted(args) & FLOATS or FLOATS


# Whatever the file says
ANY = DtypeRule(lambda args: None)
# Comparisons, and what is counted or found
BOOL = DtypeRule(lambda args: TRUTH)
INDEX = DtypeRule(lambda args: INT32)
# A dtype of the highest category, see `_promoted`
PROMOTED = DtypeRule(_promoted, "one")
# A float: that of the arguments, promoted, or either where they are none
FLOAT = DtypeRule(_floats, "one")
# The same, or the wider one, which may have been asked for
FLOAT_ASKED_FOR = DtypeRule(lambda args: _floats(args) | {"float32"}, "one")
# The same, or a half of a float32
FLOAT_OR_HALF = DtypeRule(
    lambda args: FLOATS if "float32" in _floats(args) else _floats(args), "one")
# The same, and of a tensor without elements its own dtype: torch looks no further then
FLOAT_OF_ELEMENTS = DtypeRule(
    lambda args: _floats(args) | {"float32"} | {
        tensor.dtype for tensor in _tensors(args) if not tensor.numel}, "one")
# What the tensors behind a condition are promoted to
CHOSEN = DtypeRule(lambda args: _promoted(args[1:]), "chosen")


@_rule("first")
def FIRST(args):
    """The dtype of the first tensor, whatever the others (indices, what is copied) have."""
    return frozenset({_tensors(args)[0].dtype})


@_rule("one")
def ONE(args):
    """All tensors, arguments and results, have one dtype."""
    dtypes = {tensor.dtype for tensor in _tensors(args)}
    if len(dtypes) > 1:
        raise _refuse(dtypes)
    return frozenset(dtypes)


@_rule("one")
def ONE_NUMBER(args):
    """The same, and it is not bool."""
    dtypes = ONE.allowed(args)
    if dtypes == TRUTH:
        raise _refuse(TRUTH)
    return dtypes


@_rule("one")
def ONE_FLOAT(args):
    """The same, and it is a float."""
    dtypes = {tensor.dtype for tensor in _tensors(args)}
    if len(dtypes) > 1 or not dtypes <= FLOATS:
        raise _refuse(dtypes)
    return frozenset(dtypes)


def floats_and_mask(place: int) -> DtypeRule:
    """The same of all tensors but a mask, the argument in this place, which may also be of bool or
    float32."""
    def allowed(args: Sequence[Any]) -> Allowed:
        mask = args[place] if len(args) > place else None
        if isinstance(mask, Tensor) and mask.dtype not in FLOATS | TRUTH:
            raise _refuse({mask.dtype})
        return ONE_FLOAT.allowed([*args[:place], *args[place + 1:]])
    return DtypeRule(allowed)


@_rule("one")
def FLOATS_ALIKE(args):
    """The floats among the tensors have one dtype, which the result has: others are weights."""
    dtypes = {tensor.dtype for tensor in _tensors(args)} & FLOATS
    if len(dtypes) != 1:
        raise _refuse(tensor.dtype for tensor in _tensors(args))
    return frozenset(dtypes)


@_rule("one")
def WHOLE(args):
    """Integers or bools, promoted."""
    allowed = _promoted(args)
    if allowed & FLOATS:
        raise _refuse(allowed)
    return allowed


@_rule("one")
def QUOTIENT(args):
    """Whole numbers only where the quotient is rounded: where there is a third argument."""
    return _promoted(args) if args[2:] and args[2] is not None else _floats(args)


@_rule("one")
def WITH_NUMBERS(args):
    """A tensor's dtype, or that of a number of a higher category.

    The exporter writes 1.0 as the Int 1 where the program has both, so an Int may be a float.
    """
    allowed = _promoted(args)
    if allowed & FLOATS:
        return allowed
    numbers = [arg for arg in args if isinstance(arg, (bool, int, float))]
    if any(isinstance(number, float) and not number.is_integer() for number in numbers):
        return FLOATS
    return allowed | INT32 | FLOATS if allowed == TRUTH else allowed | FLOATS
