"""Element-wise arithmetic: functions of one element, binary operators, choice and conversion."""

from __future__ import annotations

import math
from collections.abc import Callable

from vkrt.errors import UnsupportedError
from vkrt.graph.graph import Node
from vkrt.ops.arguments import argument, limited, rounded, tensor_argument
from vkrt.ops.broadcast import broadcast, convert, convert_into, is_float
from vkrt.ops.registry import op
from vkrt.pte.coerce import as_float, as_int, as_str
from vkrt.work.tensor import Tensor

# Kinds of unary.comp for floats, and for int32.
ABS, NEG, CLAMP, COS, SIN, EXP, SIGMOID, SQRT, RSQRT, TANH, ROUND, LOG10 = range(12)
HARDSWISH, HARDSIGMOID, GELU, GELU_TANH, HARDSHRINK, LEAKY_RELU, FLOOR, LOG = range(12, 20)
WHOLE_POWER, POWER, SILU, RECIPROCAL, CEIL, TRUNC = range(20, 26)
PLUS, TIMES, OVER, FMOD_BY, REMAINDER_BY, SIGN, ERF, FROM = range(26, 34)
INT_NOT, INT_POWER, INT_PLUS, INT_TIMES, INT_SIGN, INT_FROM = range(3, 9)
INT_FMOD_BY, INT_REMAINDER_BY = 9, 10

# Kinds of binary.comp.
ADD, MUL, DIV, DIV_FLOOR, DIV_TRUNC, MINIMUM, MAXIMUM, POW = range(8)
FMOD, REMAINDER = 11, 12

# What binary.comp does to its result: keeps it within bounds (those of `BOUNDS`), or one of these.
TAIL_CLAMP = 1
TAIL_KINDS = {"aten.sigmoid.default": 2, "aten.tanh.default": 3, "aten.hardswish.default": 4}

# Largest exponent that is done by multiplying.
MULTIPLIED_POWERS = 8


def compute_dtype(dtype: str) -> str:
    """The dtype in which arithmetic with results of `dtype` is done."""
    return dtype if is_float(dtype) else "int32"


def unary(cx, node: Node, kind: int, low: float = 0.0, high: float = 0.0) -> None:
    """Lowers a node to one kind of unary.comp."""
    tensor, out = tensor_argument(node, 0), node.outs[0]
    dtype = compute_dtype(out.dtype)
    source = convert(cx, cx.read(tensor), dtype)
    direct = out.dtype == dtype
    result = (cx.write(out, source.order, over=(source,)) if direct
              else cx.temporary(out.sizes, dtype, source.order))
    cx.dispatch("unary", [*result.grid, result.packed, kind, low, high], [result], [source],
                result.texels, loops=16 if kind in (FMOD_BY, REMAINDER_BY) else 0)
    if not direct:
        convert_into(cx, cx.write(out, source.order), result)


def _float_only(cx, node: Node) -> None:
    if not is_float(node.outs[0].dtype):
        raise UnsupportedError(f"{cx.where()}: a result of dtype {node.outs[0].dtype}")


def _declare(kind: int) -> Callable:
    def lower(cx, node):
        _float_only(cx, node)
        unary(cx, node, kind)
    return lower


for _name, _kind in {
    "cos": COS, "sin": SIN, "exp": EXP, "sigmoid": SIGMOID, "sqrt": SQRT, "rsqrt": RSQRT,
    "tanh": TANH, "log10": LOG10, "log": LOG, "hardswish": HARDSWISH, "hardsigmoid": HARDSIGMOID,
    "silu": SILU, "reciprocal": RECIPROCAL, "erf": ERF,
}.items():
    op(f"aten.{_name}.default")(_declare(_kind))


@op("aten.abs.default")
def _abs(cx, node):
    unary(cx, node, ABS)


@op("aten.neg.default")
def _neg(cx, node):
    unary(cx, node, NEG)


@op("aten.sign.default")
def _sign(cx, node):
    unary(cx, node, SIGN if is_float(node.outs[0].dtype) else INT_SIGN)


def _rounding(kind: int) -> Callable:
    def lower(cx, node):
        if is_float(node.outs[0].dtype):
            unary(cx, node, kind)
        else:
            unary(cx, node, CLAMP, *_limits(node.outs[0].dtype, -math.inf, math.inf))
    return lower


for _name, _kind in {"round": ROUND, "floor": FLOOR, "ceil": CEIL, "trunc": TRUNC}.items():
    op(f"aten.{_name}.default")(_rounding(_kind))


def _limits(dtype: str, low: float, high: float) -> tuple[float, float]:
    """Bounds of a clamp in the terms of the kernel for this dtype."""
    if is_float(dtype):
        return float(low), float(high)
    return limited(math.ceil(low) if math.isfinite(low) else low), limited(
        math.floor(high) if math.isfinite(high) else high)


# Operators that keep values within bounds, and these where a node does not say them.
BOUNDS = {"aten.relu.default": (0.0, math.inf), "aten.clamp.default": (-math.inf, math.inf),
          "aten.hardtanh.default": (-1.0, 1.0)}


def _bounds(node: Node) -> tuple[float, float]:
    low, high = BOUNDS[node.op]
    if node.op == "aten.relu.default":
        return low, high
    return as_float(argument(node, 1, low)), as_float(argument(node, 2, high))


@op(*BOUNDS)
def _clamp(cx, node):
    dtype, bounds = node.outs[0].dtype, _bounds(node)
    if is_float(dtype) and any(map(math.isnan, bounds)):
        # To torch everything is NaN then.
        unary(cx, node, TIMES, math.nan)
    else:
        unary(cx, node, CLAMP, *_limits(dtype, *bounds))


@op("aten.hardshrink.default")
def _hardshrink(cx, node):
    _float_only(cx, node)
    limit = as_float(argument(node, 1, 0.5))
    unary(cx, node, HARDSHRINK, rounded(limit, node.outs[0].dtype))


@op("aten.leaky_relu.default")
def _leaky_relu(cx, node):
    _float_only(cx, node)
    unary(cx, node, LEAKY_RELU, as_float(argument(node, 1, 0.01)))


@op("aten.gelu.default")
def _gelu(cx, node):
    _float_only(cx, node)
    form = as_str(argument(node, 1, "none"))
    if form not in ("none", "tanh"):
        raise UnsupportedError(f"{cx.where()}: approximate={form!r}")
    unary(cx, node, GELU if form == "none" else GELU_TANH)


@op("aten.pow.Tensor_Scalar")
def _pow_scalar(cx, node):
    exponent = as_float(node.args[1])
    if not is_float(node.outs[0].dtype):
        return unary(cx, node, INT_POWER, as_int(exponent))
    if abs(exponent) == 0.5:
        return unary(cx, node, SQRT if exponent > 0 else RSQRT)
    whole = exponent.is_integer() and abs(exponent) <= MULTIPLIED_POWERS
    return unary(cx, node, WHOLE_POWER if whole else POWER, exponent)


def _tail(node: Node | None) -> tuple[int, float, float]:
    """Parameters of binary.comp for an activation (see `vkrt.ops.fusing`) or for none."""
    if node is None:
        return 0, 0.0, 0.0
    if node.op in BOUNDS:
        return TAIL_CLAMP, *_bounds(node)
    return TAIL_KINDS[node.op], 0.0, 0.0


def binary(cx, node: Node, kind: int, alpha: float = 1) -> None:
    """Lowers a node to one kind of binary.comp."""
    tensors = [tensor_argument(node, 0), tensor_argument(node, 1)]
    out = node.outs[0]
    dtype = compute_dtype(out.dtype)
    if not is_float(dtype) and kind == DIV:
        raise UnsupportedError(f"{cx.where()}: a true division with results of {out.dtype}")
    inputs = broadcast(cx, tensors, out.sizes, (dtype, dtype))
    params = inputs.params(cx)
    direct = out.dtype == dtype
    result = (cx.write(out, inputs.order, over=inputs.over) if direct
              else cx.temporary(out.sizes, dtype, inputs.order))
    cx.dispatch("binary", [*result.grid, result.packed, *params, kind,
                           float(alpha) if is_float(dtype) else as_int(alpha),
                           *_tail(cx.fusions.tails.get(cx.node))],
                [result], inputs.operands, result.texels,
                loops=32 * 4 if kind in (POW, FMOD, REMAINDER) else 0)
    if not direct:
        convert_into(cx, cx.write(out, inputs.order), result)


@op("aten.add.Tensor")
def _add(cx, node):
    binary(cx, node, ADD, argument(node, 2, 1))


@op("aten.sub.Tensor")
def _sub(cx, node):
    binary(cx, node, ADD, -argument(node, 2, 1))


@op("aten.div.Tensor_mode")
def _div_mode(cx, node):
    kinds = {None: DIV, "floor": DIV_FLOOR, "trunc": DIV_TRUNC}
    mode = argument(node, 2)
    if mode not in kinds:
        raise UnsupportedError(f"{cx.where()}: rounding_mode={mode!r}")
    binary(cx, node, kinds[mode])


def _declare_binary(kind: int) -> Callable:
    def lower(cx, node):
        binary(cx, node, kind)
    return lower


for _name, _kind in {
    "mul.Tensor": MUL, "div.Tensor": DIV, "minimum.default": MINIMUM, "maximum.default": MAXIMUM,
    "pow.Tensor_Tensor": POW, "fmod.Tensor": FMOD, "remainder.Tensor": REMAINDER,
}.items():
    op(f"aten.{_name}")(_declare_binary(_kind))


# Operators of a tensor and a number: kinds of unary.comp for floats and for int32.
SCALAR_KINDS = {
    "add": (PLUS, INT_PLUS), "sub": (PLUS, INT_PLUS), "rsub": (FROM, INT_FROM),
    "mul": (TIMES, INT_TIMES), "div": (OVER, None), "fmod": (FMOD_BY, INT_FMOD_BY),
    "remainder": (REMAINDER_BY, INT_REMAINDER_BY),
}


def _declare_scalar(name: str) -> Callable:
    kind, int_kind = SCALAR_KINDS[name]

    def lower(cx, node):
        # A bool counts as a number.
        number = node.args[1] if isinstance(node.args[1], float) else int(node.args[1])
        alpha = argument(node, 2, 1) if name in ("add", "sub", "rsub") else 1
        if name in ("add", "sub"):
            number *= alpha if name == "add" else -alpha
        dtype = node.outs[0].dtype
        if is_float(dtype):
            number = as_float(number)
            if name in ("fmod", "remainder"):
                number = rounded(number, dtype)
            unary(cx, node, kind, number, as_float(alpha))
        elif int_kind is None:
            raise UnsupportedError(f"{cx.where()}: a result of dtype {dtype}")
        elif number == 0 and int_kind in (INT_FMOD_BY, INT_REMAINDER_BY):
            raise UnsupportedError(f"{cx.where()}: whole numbers divided by 0")
        else:
            unary(cx, node, int_kind, limited(as_int(number)), limited(as_int(alpha)))
    return lower


for _name in SCALAR_KINDS:
    op(f"aten.{_name}.Scalar")(_declare_scalar(_name))


@op("aten.where.self")
def _where(cx, node):
    choice, a, b = (tensor_argument(node, index) for index in range(3))
    out = node.outs[0]
    dtype = "uint8" if out.dtype == "bool" else out.dtype
    dtypes = (_truth(choice), *((t.dtype if t.dtype == out.dtype else dtype) for t in (a, b)))
    inputs = broadcast(cx, (choice, a, b), out.sizes, dtypes)
    params = inputs.params(cx)
    result = cx.write(out, inputs.order, over=inputs.over)
    cx.dispatch("where", [*result.grid, result.packed, *params], [result], inputs.operands,
                result.texels)


def _truth(tensor: Tensor) -> str:
    """The dtype in which a condition is read."""
    return tensor.dtype if tensor.dtype in ("bool", "uint8") else "bool"


@op("dim_order_ops._to_dim_order_copy.default", "aten._to_copy.default")
def _to_copy(cx, node):
    tensor, out = tensor_argument(node, 0), node.outs[0]
    if tensor.dtype == out.dtype or (tensor.dtype, out.dtype) == ("bool", "uint8"):
        source = cx.operand(tensor)
        if source.dtype != tensor.dtype:
            source = cx.read(tensor)
        cx.alias(out, source, source.order)
    else:
        source = cx.read(tensor)
        convert_into(cx, cx.write(out, source.order), source)
