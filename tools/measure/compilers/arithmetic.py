"""What SPIR-V's instructions make of numbers, as far as control flow in vkrt's shaders needs them.

Integers are Python's, signed and of 32 bits; vectors are lists. An instruction that is not here
makes zero, as everything that is read from memory does.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from functools import reduce
from typing import Any

EXTENDED, EXTRACT, INSERT, SHUFFLE = 12, 81, 82, 79
_CONSTRUCT, _SELECT, _ANY, _ALL = 80, 169, 154, 155
_COPIES = (83, 115, 124)  # copy, and conversions that keep what control flow looks at


def signed(value: int) -> int:
    """The low 32 bits as a signed number."""
    value &= 0xFFFFFFFF
    return value - (1 << 32) if value >> 31 else value


def _unsigned(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *values: function(*(value & 0xFFFFFFFF for value in values))


def _quotient(a: int, b: int) -> int:
    return 0 if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _clamped(value: Any, low: Any, high: Any) -> Any:
    return min(max(value, low), high)


# By component
_FUNCTIONS: dict[int, Callable[..., Any]] = {
    109: int, 110: int, 111: float, 112: _unsigned(float), 113: int, 114: int,
    126: operator.neg, 127: operator.neg, 128: operator.add, 129: operator.add,
    130: operator.sub, 131: operator.sub, 132: operator.mul, 133: operator.mul,
    134: _unsigned(_quotient), 135: _quotient, 136: lambda a, b: a / b if b else 0.0,
    137: _unsigned(lambda a, b: a % b if b else 0),
    138: lambda a, b: a - b * _quotient(a, b), 139: lambda a, b: a % b if b else 0,
    164: operator.eq, 165: operator.ne, 166: operator.or_, 167: operator.and_, 168: operator.not_,
    _SELECT: lambda which, a, b: a if which else b,
    170: operator.eq, 171: operator.ne, 172: _unsigned(operator.gt), 173: operator.gt,
    174: _unsigned(operator.ge), 175: operator.ge, 176: _unsigned(operator.lt), 177: operator.lt,
    178: _unsigned(operator.le), 179: operator.le, 180: operator.eq, 182: operator.ne,
    183: operator.ne, 184: operator.lt, 186: operator.gt, 188: operator.le, 190: operator.ge,
    194: _unsigned(lambda a, b: a >> (b & 31)), 195: lambda a, b: a >> (b & 31),
    196: lambda a, b: a << (b & 31), 197: operator.or_, 198: operator.xor, 199: operator.and_,
    200: operator.invert}
# Of GLSL.std.450
_EXTENDED: dict[int, Callable[..., Any]] = {
    3: math.trunc, 4: abs, 5: abs, 8: math.floor, 9: math.ceil,
    37: min, 38: _unsigned(min), 39: min, 40: max, 41: _unsigned(max), 42: max,
    43: _clamped, 44: _unsigned(_clamped), 45: _clamped, 50: lambda a, b, c: a * b + c}


def _by_component(function: Callable[..., Any], values: list[Any]) -> Any:
    count = max((len(value) for value in values if isinstance(value, list)), default=0)
    if not count:
        result = function(*values)
        return signed(result) if type(result) is int else result
    return [_by_component(function, [value[i] if isinstance(value, list) else value
                                     for value in values]) for i in range(count)]


def evaluate(opcode: int, operands: tuple[int, ...], value_of: Callable[[int], Any],
             zero: Any) -> Any:
    """The result of an instruction without side effects, by its operands behind the result's type
    and id; `zero` is the value of that type whose bits are zero."""
    rest, function = operands, _FUNCTIONS.get(opcode)
    if opcode == EXTENDED:
        rest, function = operands[2:], _EXTENDED.get(operands[1])
    if function is not None:
        return _by_component(function, [value_of(operand) for operand in rest])
    if opcode in _COPIES:
        return value_of(rest[0])
    if opcode == _CONSTRUCT:
        parts = [value_of(operand) for operand in rest]
        if len(zero) == len(parts):
            return parts
        return [x for part in parts for x in (part if isinstance(part, list) else [part])]
    if opcode == EXTRACT:
        return reduce(operator.getitem, rest[1:], value_of(rest[0]))
    if opcode == INSERT:
        return _inserted(value_of(rest[1]), rest[2:], value_of(rest[0]))
    if opcode == SHUFFLE:
        both = value_of(rest[0]) + value_of(rest[1])
        return [both[i] if i < len(both) else 0 for i in rest[2:]]
    if opcode in (_ANY, _ALL):
        return (any if opcode == _ANY else all)(value_of(rest[0]))
    return zero


def _inserted(whole: list[Any], path: tuple[int, ...], part: Any) -> Any:
    if not path:
        return part
    return [_inserted(value, path[1:], part) if i == path[0] else value
            for i, value in enumerate(whole)]
