"""Comparisons and logic: results are bool, bytes of 0 and 1 on the device."""

from __future__ import annotations

import math

from vkrt.ops.arguments import INT_MAX, INT_MIN, rounded
from vkrt.ops.broadcast import broadcast, convert, is_float
from vkrt.ops.dtypes import BOOL, WHOLE
from vkrt.ops.elementwise import binary, pointwise, unary
from vkrt.ops.sizes import same, together
from vkrt.ops.strided_copy import variant
from vkrt.pte.coerce import as_float
from vkrt.shader import opcode
from vkrt.work.tensor import Tensor, short_name


def promoted(*dtypes: str) -> str:
    """The dtype in which values of several dtypes are compared."""
    names = {short_name(dtype) for dtype in dtypes}
    if "f32" in names or ("f16" in names and len(names) > 1):
        return "float32"
    if "f16" in names:
        return "float16"
    return dtypes[0] if names == {"u8"} else "int32"


def compare(cx, out: Tensor, relation: str, x: Tensor, y: Tensor) -> None:
    """Fills `out` with a relation (an opcode of compare.comp) of the elements of `x` and `y`."""
    dtype = promoted(x.dtype, y.dtype)
    dtypes = [t.dtype if short_name(t.dtype) == short_name(dtype) else dtype for t in (x, y)]
    inputs = broadcast(cx, (x, y), out.sizes, dtypes)
    params = inputs.params(cx)
    result = cx.write(out, inputs.order, over=inputs.over)
    cx.map_texels("compare", result, inputs.operands, [*params, opcode("compare", relation)],
                  dtype=variant(dtype, out.dtype))


def compare_scalar(cx, out: Tensor, relation: str, x: Tensor, scalar: float) -> None:
    """Fills `out` with a relation (opcode of compare_scalar.comp) of each element and a number."""
    source = cx.read(x)
    if source.dtype == "int8":
        source = convert(cx, source, "int32")
    value = rounded(scalar, source.dtype)
    if not is_float(source.dtype):
        relation, value = _whole(relation, scalar)
        if not 0 <= value <= 255 and short_name(source.dtype) == "u8":
            source = convert(cx, source, "int32")
    result = cx.write(out, source.order, over=(source,))
    cx.map_texels("compare_scalar", result, [source], [opcode("compare_scalar", relation), value],
                  dtype=variant(source.dtype, out.dtype))


def _whole(relation: str, scalar: float) -> tuple[str, int]:
    """The comparison with a whole number that is the same, for integers, as one with any number.
    One that is always true or always false becomes one with the least int32."""
    always, never = ("GE", INT_MIN), ("LT", INT_MIN)
    if relation in ("EQ", "NE"):
        if INT_MIN <= scalar <= INT_MAX and scalar == math.floor(scalar):
            return relation, int(scalar)
        return always if relation == "NE" else never
    if not INT_MIN <= scalar <= INT_MAX:
        # Beyond every int, or NaN, to which nothing compares.
        below, above = relation in ("LT", "LE"), relation in ("GT", "GE")
        return always if below and scalar > 0 or above and scalar < 0 else never
    # x < 2.5 and x >= 2.5 turn at 3, x <= 2.5 and x > 2.5 at 2.
    whole = math.ceil(scalar) if relation in ("LT", "GE") else math.floor(scalar)
    return relation, int(whole)


@pointwise(
    "aten.eq.Tensor aten.ne.Tensor aten.lt.Tensor aten.le.Tensor aten.gt.Tensor aten.ge.Tensor",
    "self:T other:T", sizes=together, dtypes=BOOL, convert="common")
def _compare(cx, node, x, y):
    compare(cx, node.outs[0], node.name.upper(), x, y)


@pointwise(
    "aten.eq.Scalar aten.ne.Scalar aten.lt.Scalar aten.le.Scalar aten.gt.Scalar aten.ge.Scalar",
    "self:T other:n", sizes=same, dtypes=BOOL)
def _compare_scalar(cx, node, x, number):
    compare_scalar(cx, node.outs[0], node.name.upper(), x, as_float(number))


@pointwise("aten.isnan.default aten.isinf.default", "self:T", sizes=same, dtypes=BOOL)
def _is(cx, node, x):
    compare_scalar(cx, node.outs[0], node.name.upper(), x, 0)


@pointwise("aten.logical_and.default aten.logical_or.default aten.logical_xor.default",
    "self:T other:T", sizes=together, dtypes=BOOL, convert="common")
@pointwise("aten.bitwise_and.Tensor aten.bitwise_or.Tensor aten.bitwise_xor.Tensor",
    "self:T other:T", sizes=together, dtypes=WHOLE)
def combine(cx, node, x, y):
    """AND, OR or XOR, as the name of a logical or bitwise operator ends."""
    relation, out = node.name.split("_")[1].upper(), node.outs[0]
    if out.dtype == "bool":
        compare(cx, out, relation, x, y)
    else:
        binary(cx, out, relation, x, y)


@pointwise("aten.logical_not.default", "self:T", sizes=same, dtypes=BOOL)
@pointwise("aten.bitwise_not.default", "self:T", sizes=same, dtypes=WHOLE)
def _not(cx, node, x):
    if node.outs[0].dtype == "bool":
        compare_scalar(cx, node.outs[0], "EQ", x, 0)
    else:
        unary(cx, node.outs[0], "NOT", x)
