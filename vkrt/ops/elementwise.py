"""Element-wise arithmetic: functions of one element, binary operators, choice and conversion.

A function of one element that torch calls `name` is `case NAME:` in
shaders/elementwise/unary.comp, or in elementary.comp beside it where only floats have it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

from vkrt.errors import UnsupportedError
from vkrt.ops.arguments import limited, rounded
from vkrt.ops.broadcast import broadcast, convert, convert_into, is_float, result_in
from vkrt.ops.dtypes import (
    ANY,
    CHOSEN,
    FLOAT,
    FLOAT_OR_HALF,
    ONE,
    ONE_FLOAT,
    PROMOTED,
    QUOTIENT,
    WITH_NUMBERS,
)
from vkrt.ops.epilogue import GELU, Epilogue, node_epilogue
from vkrt.ops.registry import op
from vkrt.ops.rows import POINTWISE
from vkrt.ops.sizes import broadcast as broadcast_sizes
from vkrt.ops.sizes import fail, same, together, unsupported
from vkrt.pte.coerce import as_float, as_int
from vkrt.shader import opcode
from vkrt.work.tensor import Operand, Tensor

# Largest exponent that is done by multiplying.
MULTIPLIED_POWERS = 8

pointwise = partial(op, rows=POINTWISE)


def compute_dtype(dtype: str) -> str:
    """The dtype in which arithmetic with results of `dtype` is done."""
    return dtype if is_float(dtype) else "int32"


def unary(cx, out: Tensor, function: str, x: Tensor, *numbers: float, shader: str = "unary"
          ) -> None:
    """Fills `out` with a function, an opcode of `shader`, of each element of `x` and up to three
    numbers."""
    # A float32 is not rounded to half before the function is done.
    dtype = x.dtype if is_float(x.dtype) and is_float(out.dtype) else compute_dtype(out.dtype)
    source = convert(cx, cx.read(x), dtype)
    numbers = (*numbers, 0.0, 0.0, 0.0)[:3]
    with result_in(cx, dtype, out, source.order, (source,)) as result:
        cx.map_texels(shader, result, [source], [opcode(shader, function), *numbers],
                      loops=16 if function in ("FMOD_BY", "REMAINDER_BY") else 0)


def _function(cx, node, x):
    unary(cx, node.outs[0], node.name.upper(), x)


@pointwise("aten.elu.default", "self:T alpha:f scale:f input_scale:f", sizes=same, dtypes=ONE_FLOAT)
@pointwise("aten.softplus.default", "self:T beta:f threshold:f", sizes=same, dtypes=ONE_FLOAT)
def _elementary(cx, node, *args):
    """An opcode of elementary.comp with the numbers behind the tensor."""
    unary(cx, node.outs[0], node.name.upper(), *args, shader="elementary")


def _functions(names: str, dtypes, function=_function, **others) -> None:
    for name in names.split():
        pointwise(f"aten.{name}.default", "self:T", sizes=same, dtypes=dtypes, **others)(function)


_functions("exp reciprocal rsqrt sqrt", FLOAT)
_functions("cos sin", FLOAT_OR_HALF, _elementary)
_functions("log log10 erf log1p expm1 exp2 log2 tan sinh cosh asin acos atan asinh acosh "
           "atanh erfinv lgamma", FLOAT, _elementary)
_functions("sigmoid", FLOAT, activation="SIGMOID")
_functions("tanh", FLOAT, activation="TANH")
_functions("silu", ONE_FLOAT, activation="SILU")
_functions("mish", ONE_FLOAT, _elementary)
_functions("hardswish", ONE_FLOAT, activation="HARDSWISH")
_functions("hardsigmoid", ONE_FLOAT, activation="HARDSIGMOID")
_functions("abs neg sign", ONE)


@pointwise("aten.round.default aten.floor.default aten.ceil.default aten.trunc.default", "self:T",
    sizes=same, dtypes=ONE)
def _rounding(cx, node, x):
    if is_float(node.outs[0].dtype):
        _function(cx, node, x)
    else:
        _clamp(cx, node, x)


def _limits(dtype: str, low: float, high: float) -> tuple[float, float]:
    """Bounds of a clamp in the terms of the kernel for this dtype."""
    if is_float(dtype):
        return float(low), float(high)
    return limited(math.ceil(low) if math.isfinite(low) else low), limited(
        math.floor(high) if math.isfinite(high) else high)


def _bounds(_x, low: float | None = None, high: float | None = None) -> tuple[float, float]:
    return -math.inf if low is None else low, math.inf if high is None else high


def _positive(_x) -> tuple[float, float]:
    return 0.0, math.inf


@pointwise("aten.clamp.default", "self:T min:f? max:f?", sizes=same, dtypes=WITH_NUMBERS,
    activation="CLAMP", bounds=_bounds)
@pointwise("aten.hardtanh.default", "self:T min:f max:f", sizes=same, dtypes=ONE,
    activation="CLAMP", bounds=_bounds)
def _clamp(cx, node, x, low=None, high=None):
    _between(cx, node.outs[0], x, *_bounds(x, low, high))


@pointwise("aten.relu.default", "self:T", sizes=same, dtypes=ONE,
    activation="CLAMP", bounds=_positive)
def _relu(cx, node, x):
    _between(cx, node.outs[0], x, *_positive(x))


def _between(cx, out: Tensor, x: Tensor, low: float, high: float) -> None:
    if is_float(out.dtype) and (math.isnan(low) or math.isnan(high)):
        # torch gives NaN for every element then.
        unary(cx, out, "TIMES", x, math.nan)
    else:
        unary(cx, out, "CLAMP", x, *_limits(out.dtype, low, high))


@pointwise("aten.hardshrink.default", "self:T lambd:f", sizes=same, dtypes=ONE_FLOAT)
def _hardshrink(cx, node, x, limit):
    unary(cx, node.outs[0], "HARDSHRINK", x, rounded(limit, node.outs[0].dtype))


@pointwise("aten.leaky_relu.default", "self:T negative_slope:f", sizes=same, dtypes=ONE_FLOAT)
def _leaky_relu(cx, node, x, slope):
    unary(cx, node.outs[0], "LEAKY_RELU", x, slope)


def _gelu_sizes(x, approximate):
    if approximate not in GELU:
        fail("approximate", f"expected one of {tuple(GELU)}, got {approximate!r}")
    return (x,)


@pointwise("aten.gelu.default", "self:T approximate:s", sizes=_gelu_sizes, dtypes=ONE_FLOAT,
    activation="GELU")
def _gelu(cx, node, x, approximate):
    unary(cx, node.outs[0], GELU[approximate], x)


@pointwise("aten.pow.Tensor_Scalar", "self:T exponent:n", sizes=same, dtypes=WITH_NUMBERS)
def _pow_scalar(cx, node, x, exponent):
    out, number = node.outs[0], as_float(exponent)
    if not is_float(out.dtype):
        unary(cx, out, "POWER", x, as_int(exponent))
    elif abs(number) == 0.5:
        unary(cx, out, "SQRT" if number > 0 else "RSQRT", x)
    else:
        whole = number.is_integer() and abs(number) <= MULTIPLIED_POWERS
        unary(cx, out, "WHOLE_POWER" if whole else "POWER", x, number)


# Operators of a tensor and a number

SCALAR_FUNCTIONS = {"add": "PLUS", "sub": "PLUS", "rsub": "FROM", "mul": "TIMES", "div": "OVER",
                    "fmod": "FMOD_BY", "remainder": "REMAINDER_BY"}


@pointwise("aten.div.Scalar", "self:T other:n", sizes=same, dtypes=FLOAT)
@pointwise("aten.mul.Scalar aten.fmod.Scalar aten.remainder.Scalar", "self:T other:n", sizes=same,
    dtypes=WITH_NUMBERS)
@pointwise("aten.add.Scalar aten.sub.Scalar aten.rsub.Scalar", "self:T other:n alpha:n?",
    sizes=same, dtypes=WITH_NUMBERS)
def _with_scalar(cx, node, x, number, alpha=None):
    out, name = node.outs[0], node.name
    function = SCALAR_FUNCTIONS[name]
    alpha = 1 if alpha is None else alpha
    if function == "PLUS":
        number *= alpha if name == "add" else -alpha
    if is_float(out.dtype):
        number = as_float(number)
        if name in ("fmod", "remainder"):
            number = rounded(number, out.dtype)
        unary(cx, out, function, x, number, as_float(alpha))
    elif number == 0 and name in ("fmod", "remainder"):
        raise UnsupportedError(f"{cx.where()}: whole numbers divided by 0")
    else:
        unary(cx, out, function, x, limited(as_int(number)), limited(as_int(alpha)))


# Two tensors


def binary(cx, out: Tensor, function: str, x: Tensor, y: Tensor, alpha: float = 1,
           then: Epilogue | None = None) -> None:
    """Fills `out` with a function (an opcode of binary.comp) of the elements of `x` and `y`, and
    does `then`, one of `ACTIVATIONS`, to the result (None: nothing)."""
    dtype = compute_dtype(out.dtype)
    epilogue = (opcode("binary", then.activation), *then.bounds) if then else (0, 0.0, 0.0)
    factor = float(alpha) if is_float(dtype) else as_int(alpha)
    _dispatch_binary(cx, out, dtype, "binary", x, y,
                     (opcode("binary", function), factor, *epilogue),
                     32 * 4 if function in ("POW", "FMOD", "REMAINDER") else 0)


def special(cx, out: Tensor, function: str, x: Tensor, y: Tensor) -> None:
    """Fills `out`, of floats, with a function (an opcode of binary_special.comp) of the elements of
    `x` and `y`."""
    _dispatch_binary(cx, out, out.dtype, "binary_special", x, y,
                     (opcode("binary_special", function),))


def _dispatch_binary(cx, out: Tensor, dtype: str, shader: str, x: Tensor, y: Tensor,
                     params_behind: Sequence[int | float], loops: int = 0) -> None:
    """Dispatches a kernel of two operands, which computes in a dtype."""
    dtypes: Sequence[str] = (dtype, dtype)
    if dtype == "float16" and "float32" in (x.dtype, y.dtype):
        # A float32 is read as it is: kernels see texels of either dtype, and buffers of their own.
        dtypes = [each.dtype if is_float(each.dtype) else dtype for each in (x, y)]
        if "buffer" in (cx.storage, cx.variant(broadcast(cx, (x, y), out.sizes, dtypes).operands)):
            dtype, dtypes = "float32", ("float32", "float32")
    inputs = broadcast(cx, (x, y), out.sizes, dtypes)
    params = inputs.params(cx)
    with result_in(cx, dtype, out, inputs.order, inputs.over) as result:
        cx.map_texels(shader, result, inputs.operands, [*params, *params_behind], loops=loops)


# Activations that binary.comp does to its result
ACTIVATIONS = ("CLAMP", "SIGMOID", "TANH", "HARDSWISH")


@pointwise("aten.fmod.Tensor aten.remainder.Tensor aten.pow.Tensor_Tensor aten.minimum.default "
    "aten.maximum.default", "self:T other:T", sizes=together, dtypes=PROMOTED)
@pointwise("aten.atan2.default", "self:T other:T", sizes=together, dtypes=FLOAT)
@pointwise("aten.div.Tensor", "self:T other:T", sizes=together, dtypes=FLOAT,
    kernels="aten::{}.out", takes_activation=ACTIVATIONS)
@pointwise("aten.mul.Tensor", "self:T other:T", sizes=together, dtypes=PROMOTED,
    kernels="aten::{}.out", takes_activation=ACTIVATIONS)
@pointwise("vkrt.silu_mul.default", "self:T other:T", sizes=together, dtypes=PROMOTED,
    takes_activation=ACTIVATIONS)
def _two(cx, node, x, y):
    binary(cx, node.outs[0], node.name.upper(), x, y, then=node_epilogue(cx))


@pointwise("aten.hypot.default aten.copysign.Tensor", "self:T other:T", sizes=together,
    dtypes=FLOAT, kernels="aten::{}.out")
@pointwise("aten.fmin.default aten.fmax.default", "self:T other:T", sizes=together, dtypes=PROMOTED)
def _special(cx, node, x, y):
    """For whole numbers, which are never NaN, fmin and fmax are minimum and maximum."""
    out, function = node.outs[0], node.name.upper()
    if is_float(out.dtype):
        special(cx, out, function, x, y)
    else:
        binary(cx, out, {"FMIN": "MINIMUM", "FMAX": "MAXIMUM"}[function], x, y)


@pointwise("aten._prelu_kernel.default", "self:T weight:T", sizes=together, dtypes=FLOAT,
    kernels="")
def _prelu(cx, node, x, weight):
    binary(cx, node.outs[0], "PRELU", x, weight)


@pointwise("aten.add.Tensor aten.sub.Tensor", "self:T other:T alpha:n", sizes=together,
    dtypes=PROMOTED, kernels="aten::{}.out", takes_activation=ACTIVATIONS)
def _sum(cx, node, x, y, alpha):
    binary(cx, node.outs[0], "ADD", x, y, alpha if node.op == "aten.add.Tensor" else -alpha,
           then=node_epilogue(cx))


def _limited_sizes(x, y, *bounds):
    if any(bound is not None and math.isnan(bound) for bound in bounds):
        unsupported("output_min", f"bounds {list(bounds)}; vkrt limits results to numbers")
    return (broadcast_sizes(x, y),)


# executorch 1.0 writes arithmetic with an activation like this; binary_add_.. has no alpha.
@pointwise("et_vk.binary_add_with_clamp.default et_vk.binary_sub_with_clamp.default "
    "et_vk.binary_mul_with_clamp.default et_vk.binary_div_with_clamp.default",
    "input:T other:T output_min:f? output_max:f?", sizes=_limited_sizes, dtypes=ONE_FLOAT,
    broadcasts="input other")
def _limited(cx, node, x, y, low, high):
    function = node.name.split("_")[1]
    binary(cx, node.outs[0], "ADD" if function == "sub" else function.upper(), x, y,
           -1 if function == "sub" else 1, Epilogue("CLAMP", _bounds(x, low, high)))


ROUNDING = {None: "DIV", "floor": "DIV_FLOOR", "trunc": "DIV_TRUNC"}


def div_mode_sizes(x, y, mode):
    if mode not in ROUNDING:
        fail("rounding_mode", f"expected Null, 'floor' or 'trunc', got {mode!r}")
    return (broadcast_sizes(x, y),)


@pointwise("aten.div.Tensor_mode", "self:T other:T rounding_mode:s?", sizes=div_mode_sizes,
    dtypes=QUOTIENT, kernels="aten::div.out_mode", broadcasts="self other")
@pointwise("aten.floor_divide.default", "self:T other:T", sizes=together, dtypes=PROMOTED)
def _div_mode(cx, node, x, y, mode="floor"):
    binary(cx, node.outs[0], ROUNDING[mode], x, y)


# Choice and conversion


@pointwise("aten.where.self", "condition:T.bool self:T other:T",
    sizes=lambda *sizes: (broadcast_sizes(*sizes),), dtypes=CHOSEN,
    broadcasts="condition self other")
def _where(cx, node, choice, a, b):
    choose(cx, node.outs[0], choice, a, b)


def choose(cx, out: Tensor, choice: Tensor, a: Tensor, b: Tensor) -> None:
    """Fills `out` with the elements of `a` where `choice` is true, else with those of `b`."""
    dtype = "uint8" if out.dtype == "bool" else out.dtype
    dtypes = ("bool", *((t.dtype if t.dtype == out.dtype else dtype) for t in (a, b)))
    inputs = broadcast(cx, (choice, a, b), out.sizes, dtypes)
    params = inputs.params(cx)
    result = cx.write(out, inputs.order, over=inputs.over)
    cx.map_texels("where", result, inputs.operands, params)


@pointwise("aten._to_copy.default", "self:T *:*", sizes=same, dtypes=ANY, kernels="")
@pointwise("dim_order_ops._to_dim_order_copy.default", "self:T *:*", sizes=same, dtypes=ANY,
    kernels="dim_order_ops::{}.out aten::_to_copy.out")
def _to_copy(cx, node, x):
    out = node.outs[0]
    if x.dtype == out.dtype or (x.dtype, out.dtype) == ("bool", "uint8"):
        source: Operand = cx.operand(x, x.dtype)
        cx.alias(out, source, source.order)
    else:
        source = cx.read(x)
        convert_into(cx, cx.write(out, source.order), source)
