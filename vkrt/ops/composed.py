"""Operators made of other operators, or with a number where another operator has a tensor."""

from __future__ import annotations

import math

from vkrt.errors import UnsupportedError
from vkrt.ops.arguments import rounded
from vkrt.ops.broadcast import fill, is_float
from vkrt.ops.comparison import combine
from vkrt.ops.dtypes import (
    FIRST,
    FLOAT,
    FLOAT_ASKED_FOR,
    INT32,
    ONE_FLOAT,
    PROMOTED,
    QUOTIENT,
    WHOLE,
    WITH_NUMBERS,
    DtypeRule,
)
from vkrt.ops.elementwise import ROUNDING, binary, choose, div_mode_sizes, special, unary
from vkrt.ops.parts import part
from vkrt.ops.registry import op
from vkrt.ops.sizes import broadcast, fail, same, together, unsupported, wrap
from vkrt.work.tensor import Tensor

# Powers of 10 that fp32 has
MOST_DECIMALS = 38


def filled(cx, number: float, dtype: str) -> Tensor:
    """A 0-d tensor with a number."""
    tensor = Tensor((), dtype)
    fill(cx, tensor, number)
    return tensor


# A rounded quotient has the tensor's dtype or that of the number, any other quotient is a float.
_ROUNDED = DtypeRule(
    lambda args: (WITH_NUMBERS if args[2:] and args[2] is not None else QUOTIENT).allowed(args),
    "one")


@op("aten.div.Scalar_mode", "self:T other:n rounding_mode:s?",
    sizes=lambda x, _number, mode: div_mode_sizes(x, (), mode), dtypes=_ROUNDED)
def _div_mode(cx, node, x, number, mode):
    out = node.outs[0]
    if not number and not is_float(out.dtype):
        raise UnsupportedError(f"{cx.where()}: whole numbers divided by 0")
    binary(cx, out, ROUNDING[mode], x, filled(cx, number, out.dtype))


@op("aten.pow.Scalar", "self:n exponent:T", sizes=lambda _number, exponent: (exponent,),
    dtypes=WITH_NUMBERS)
def _pow(cx, node, number, exponent):
    out = node.outs[0]
    binary(cx, out, "POW", filled(cx, number, out.dtype), exponent)


@op("aten.copysign.Scalar", "self:T other:n", sizes=same, dtypes=FLOAT)
def _copysign(cx, node, x, number):
    out = node.outs[0]
    special(cx, out, "COPYSIGN", x, filled(cx, number, out.dtype))


@op("aten.ldexp.Tensor", "self:T other:T", sizes=together, dtypes=FLOAT_ASKED_FOR,
    kernels="aten::{}.out")
def _ldexp(cx, node, x, exponent):
    """x * 2^exponent; as in torch the power is infinity or 0 where it is beyond the dtype."""
    out = node.outs[0]
    power = Tensor(exponent.sizes, out.dtype)
    unary(cx, power, "EXP2", exponent, shader="elementary")
    binary(cx, out, "MUL", x, power)


def _decimals_sizes(x, decimals):
    if abs(decimals) > MOST_DECIMALS:
        unsupported("decimals", f"{decimals}; vkrt has -{MOST_DECIMALS} to {MOST_DECIMALS}")
    return (x,)


@op("aten.round.decimals", "self:T decimals:i", sizes=_decimals_sizes, dtypes=ONE_FLOAT)
def _round(cx, node, x, decimals):
    """Rounds to the nearest multiple of 10^-decimals, ties to the even multiple."""
    out = node.outs[0]
    power = rounded(10.0 ** abs(decimals), out.dtype)
    scaled, whole = (Tensor(x.sizes, out.dtype) for _ in range(2))
    there, back = ("TIMES", "OVER") if decimals > 0 else ("OVER", "TIMES")
    unary(cx, scaled, there, x, power)
    unary(cx, whole, "ROUND", scaled)
    unary(cx, out, back, whole, power)


_WHOLE_WITH_NUMBERS = DtypeRule(lambda args: (WHOLE.allowed(args) or INT32) | INT32, "one")


@op("aten.bitwise_and.Scalar aten.bitwise_or.Scalar aten.bitwise_xor.Scalar", "self:T other:n",
    sizes=same, dtypes=_WHOLE_WITH_NUMBERS)
def _bitwise(cx, node, x, number):
    combine(cx, node, x, filled(cx, number, node.outs[0].dtype))


SHIFTS = {"bitwise_left_shift": "SHIFT_LEFT", "__lshift__": "SHIFT_LEFT",
          "bitwise_right_shift": "SHIFT_RIGHT", "__rshift__": "SHIFT_RIGHT"}


@op("aten.bitwise_left_shift.Tensor aten.__lshift__.Tensor aten.bitwise_right_shift.Tensor "
    "aten.__rshift__.Tensor", "self:T other:T", sizes=together, dtypes=WHOLE)
def _shift(cx, node, x, y):
    binary(cx, node.outs[0], SHIFTS[node.name], x, y)


@op("aten.bitwise_left_shift.Tensor_Scalar aten.__lshift__.Scalar "
    "aten.bitwise_right_shift.Tensor_Scalar aten.__rshift__.Scalar", "self:T other:n",
    sizes=same, dtypes=_WHOLE_WITH_NUMBERS)
def _shift_by(cx, node, x, number):
    binary(cx, node.outs[0], SHIFTS[node.name], x, filled(cx, number, "int32"))


def clamp_sizes(x, *bounds):
    return (broadcast(x, *(bound for bound in bounds if bound is not None)),)


@op("aten.clamp.Tensor", "self:T min:T? max:T?", sizes=clamp_sizes, dtypes=PROMOTED,
    broadcasts="self min max")
def _clamp(cx, node, x, low, high):
    """Where the bounds cross, the upper one wins."""
    out = node.outs[0]
    if high is None:
        # Without any bound x stays as it is.
        binary(cx, out, "MAXIMUM", x, x if low is None else low)
        return
    if low is not None:
        above = Tensor(broadcast(x.sizes, low.sizes), out.dtype)
        binary(cx, above, "MAXIMUM", x, low)
        x = above
    binary(cx, out, "MINIMUM", x, high)


def gated_sizes(x, dim):
    dim = wrap(-1 if dim is None else dim, len(x))
    if not x or x[dim] % 2:
        fail("dim", f"expected an even number of elements in dimension {dim} of {list(x)}")
    return ((*x[:dim], x[dim] // 2, *x[dim + 1:]),)


@op("aten.glu.default", "self:T dim:i?", sizes=gated_sizes, dtypes=ONE_FLOAT)
def _glu(cx, node, x, dim):
    """The first half of a dimension times the sigmoid of the second."""
    out = node.outs[0]
    dim = wrap(-1 if dim is None else dim, x.rank)
    value, gate, share = (Tensor(out.sizes, out.dtype) for _ in range(3))
    part(cx, x, value, dim, 0)
    part(cx, x, gate, dim, out.sizes[dim])
    unary(cx, share, "SIGMOID", gate)
    binary(cx, out, "MUL", value, share)


@op("aten.masked_fill.Scalar", "self:T mask:T.bool value:n", sizes=together, dtypes=FIRST)
def _masked_fill(cx, node, x, mask, value):
    out = node.outs[0]
    choose(cx, out, mask, filled(cx, value, out.dtype), x)


def _logit_sizes(x, epsilon):
    if epsilon is not None and math.isnan(epsilon):
        fail("eps", "expected a number, got NaN")
    return (x,)


@op("aten.logit.default", "self:T eps:f?", sizes=_logit_sizes, dtypes=ONE_FLOAT)
def _logit(cx, node, x, epsilon):
    """log(x / (1 - x)); x is limited to eps .. 1 - eps where eps is given."""
    low, high = (-math.inf, math.inf) if epsilon is None else (epsilon, 1.0 - epsilon)
    unary(cx, node.outs[0], "LOGIT", x, low, high, shader="elementary")
