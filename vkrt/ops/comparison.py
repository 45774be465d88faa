"""Comparisons and logic: results are bool, bytes of 0 and 1 on the device."""

from __future__ import annotations

import math
from collections.abc import Callable

from vkrt.errors import UnsupportedError
from vkrt.graph.graph import Node
from vkrt.ops.arguments import INT_MAX, INT_MIN, rounded, tensor_argument
from vkrt.ops.broadcast import broadcast, convert, is_float
from vkrt.ops.copying import variant
from vkrt.ops.elementwise import INT_NOT, binary, unary
from vkrt.ops.registry import op
from vkrt.pte.coerce import as_float
from vkrt.work.tensor import short_name

# Kinds of compare.comp; compare_scalar.comp has the first six.
EQ, NE, LT, LE, GT, GE, AND, OR, XOR = range(9)
KINDS = {"eq": EQ, "ne": NE, "lt": LT, "le": LE, "gt": GT, "ge": GE}

# Kinds of binary.comp on int32.
INT_AND, INT_OR, INT_XOR = 8, 9, 10


def promoted(*dtypes: str) -> str:
    """The dtype in which values of several dtypes are compared."""
    names = {short_name(dtype) for dtype in dtypes}
    if "f32" in names or ("f16" in names and len(names) > 1):
        return "float32"
    if "f16" in names:
        return "float16"
    return dtypes[0] if names == {"u8"} else "int32"


def compare(cx, node: Node, kind: int) -> None:
    """Lowers a node to one kind of compare.comp."""
    tensors = [tensor_argument(node, 0), tensor_argument(node, 1)]
    out = node.outs[0]
    dtype = promoted(*(t.dtype for t in tensors))
    dtypes = [t.dtype if short_name(t.dtype) == short_name(dtype) else dtype for t in tensors]
    inputs = broadcast(cx, tensors, out.sizes, dtypes)
    params = inputs.params(cx)
    result = cx.write(out, inputs.order, over=inputs.over)
    cx.dispatch("compare", [*result.grid, result.packed, *params, kind], [result],
                inputs.operands, result.texels, dtype=variant(dtype, out.dtype))


def compare_scalar(cx, node: Node, kind: int, scalar: float) -> None:
    """Lowers a node to a comparison of its first argument with a number."""
    tensor, out = tensor_argument(node, 0), node.outs[0]
    source = cx.read(tensor)
    if source.dtype == "int8":
        source = convert(cx, source, "int32")
    value = rounded(scalar, source.dtype)
    if not is_float(source.dtype):
        kind, value = _whole(kind, scalar)
        if not 0 <= value <= 255 and short_name(source.dtype) == "u8":
            source = convert(cx, source, "int32")
    result = cx.write(out, source.order, over=(source,))
    cx.dispatch("compare_scalar", [*result.grid, result.packed, kind, value], [result], [source],
                result.texels, dtype=variant(source.dtype, out.dtype))


def _whole(kind: int, scalar: float) -> tuple[int, int]:
    """The comparison of whole numbers that agrees with one with any number.

    Those that are always true or false become one with a limit of int32.
    """
    always, never = (GE, INT_MIN), (LT, INT_MIN)
    if kind in (EQ, NE):
        if INT_MIN <= scalar <= INT_MAX and scalar == math.floor(scalar):
            return kind, int(scalar)
        return always if kind == NE else never
    if not INT_MIN <= scalar <= INT_MAX:
        # Beyond every int, or NaN, to which nothing compares.
        return always if (kind in (LT, LE) and scalar > 0 or kind in (GT, GE) and scalar < 0
                          ) else never
    # x < 2.5 and x >= 2.5 turn at 3, x <= 2.5 and x > 2.5 at 2.
    whole = math.ceil(scalar) if kind in (LT, GE) else math.floor(scalar)
    return kind, int(whole)


def _declare(kind: int) -> tuple[Callable, Callable]:
    def with_tensor(cx, node):
        compare(cx, node, kind)

    def with_scalar(cx, node):
        compare_scalar(cx, node, kind, as_float(node.args[1]))

    return with_tensor, with_scalar


for _name, _kind in KINDS.items():
    _with_tensor, _with_scalar = _declare(_kind)
    op(f"aten.{_name}.Tensor")(_with_tensor)
    op(f"aten.{_name}.Scalar")(_with_scalar)


def _logical(kind: int) -> Callable:
    def lower(cx, node):
        compare(cx, node, kind)
    return lower


def _bitwise(kind: int, int_kind: int) -> Callable:
    def lower(cx, node):
        if node.outs[0].dtype == "bool":
            compare(cx, node, kind)
        else:
            binary(cx, node, int_kind)
    return lower


for _name, _kind, _int_kind in (("and", AND, INT_AND), ("or", OR, INT_OR), ("xor", XOR, INT_XOR)):
    op(f"aten.logical_{_name}.default")(_logical(_kind))
    op(f"aten.bitwise_{_name}.Tensor")(_bitwise(_kind, _int_kind))


@op("aten.logical_not.default")
def _logical_not(cx, node):
    compare_scalar(cx, node, EQ, 0)


@op("aten.bitwise_not.default")
def _bitwise_not(cx, node):
    if is_float(node.outs[0].dtype):
        raise UnsupportedError(f"{cx.where()}: a result of dtype {node.outs[0].dtype}")
    if node.outs[0].dtype == "bool":
        compare_scalar(cx, node, EQ, 0)
    else:
        unary(cx, node, INT_NOT)
