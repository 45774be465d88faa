"""Dtype rules: which dtypes an operator's tensors may have together, and which its results have.

A shader is chosen by the dtypes of some of a node's operands. If a file gave another operand the
wrong dtype, the shader would read past its end. So every declaration has a rule. Where the file
decides, as in a conversion, the rule is `ANY`.

The device has no 64-bit numbers: they have 32 bits there (see `vkrt.work.tensor`). And with the
exporter's `force_fp16` every float is a half. So wherever torch makes floats of integers, both
float dtypes are right.
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
    """A dtype of the highest category among the tensors. torch takes the wider dtype, unless only
    0-d tensors have it. A delegate may have 0-d tensors as 1-d ones, so each dtype of the category
    may be right."""
    dtypes = {tensor.dtype for tensor in _tensors(args)}
    highest = max(map(_category, dtypes), default=0)
    return frozenset(dtype for dtype in dtypes if _category(dtype) == highest)


def _floats(args: Sequence[Any]) -> frozenset[str]:
    return _promoted(args) & FLOATS or FLOATS


# Whatever the file says
ANY = DtypeRule(lambda args: None)
# Truth values; counts and indices
BOOL = DtypeRule(lambda args: TRUTH)
INDEX = DtypeRule(lambda args: INT32)
# A dtype of the highest category, see `_promoted`
PROMOTED = DtypeRule(_promoted, "one")
# A float: the promoted dtype of the arguments, or any float where that dtype is no float
FLOAT = DtypeRule(_floats, "one")
# As `FLOAT`, or float32, which the program may have asked for
FLOAT_ASKED_FOR = DtypeRule(lambda args: _floats(args) | {"float32"}, "one")
# As `FLOAT`, or a half where that is float32
FLOAT_OR_HALF = DtypeRule(
    lambda args: FLOATS if "float32" in _floats(args) else _floats(args), "one")
# As `FLOAT_ASKED_FOR`; a tensor without elements may keep its dtype, as torch returns early then
FLOAT_OF_ELEMENTS = DtypeRule(
    lambda args: _floats(args) | {"float32"} | {
        tensor.dtype for tensor in _tensors(args) if not tensor.numel}, "one")
# The promoted dtype of the tensors behind a condition
CHOSEN = DtypeRule(lambda args: _promoted(args[1:]), "chosen")


@_rule("own")
def FIRST(args):
    """The dtype of the first tensor, whatever dtypes other tensors (indices, a source) have."""
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
    """As `ONE`, but not bool."""
    dtypes = ONE.allowed(args)
    if dtypes == TRUTH:
        raise _refuse(TRUTH)
    return dtypes


@_rule("one")
def ONE_FLOAT(args):
    """As `ONE`, and the dtype is a float."""
    dtypes = {tensor.dtype for tensor in _tensors(args)}
    if len(dtypes) > 1 or not dtypes <= FLOATS:
        raise _refuse(dtypes)
    return frozenset(dtypes)


@_rule("one")
def ONE_FLOAT_OR_SINGLE(args):
    """As `ONE_FLOAT`, or float32, which passes ask for where a half has too small a range."""
    return (ONE_FLOAT.allowed(args) or frozenset()) | {"float32"}


def floats_and_mask(place: int) -> DtypeRule:
    """As `ONE_FLOAT` for all tensors but a mask, the argument in this place, which may be of bool
    or of any float."""
    def allowed(args: Sequence[Any]) -> Allowed:
        mask = args[place] if len(args) > place else None
        if isinstance(mask, Tensor) and mask.dtype not in FLOATS | TRUTH:
            raise _refuse({mask.dtype})
        return ONE_FLOAT.allowed([*args[:place], *args[place + 1:]])
    return DtypeRule(allowed)


@_rule("one")
def FLOATS_ALIKE(args):
    """Float tensors have one dtype, also the result's; tensors of other dtypes are weights."""
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
    """The promoted dtype where a third argument says that the quotient is rounded, else a float."""
    return _promoted(args) if args[2:] and args[2] is not None else _floats(args)


@_rule("one")
def WITH_NUMBERS(args):
    """A tensor's dtype, or that of a number of a higher category. The exporter writes 1.0 as the
    Int 1 where the program has both, so an Int may be a float."""
    allowed = _promoted(args)
    if allowed & FLOATS:
        return allowed
    numbers = [arg for arg in args if isinstance(arg, (bool, int, float))]
    if any(isinstance(number, float) and not number.is_integer() for number in numbers):
        return FLOATS
    return allowed | INT32 | FLOATS if allowed == TRUTH else allowed | FLOATS
