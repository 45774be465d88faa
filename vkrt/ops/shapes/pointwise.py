"""Shape rules of operators that make every element from the elements at the same place."""

from __future__ import annotations

import math

from vkrt.ops.shapes.rules import at_least, broadcast, fail, need_broadcast, rule

GELU = ("none", "tanh")
ROUNDING = (None, "floor", "trunc")


@rule("self:T *:*", "aten.clone.default", "dim_order_ops._clone_dim_order.default",
      "dim_order_ops._to_dim_order_copy.default", "aten._to_copy.default",
      "aten.alias_copy.default", "et_vk.prepack.default", "aten.zeros_like.default",
      "aten.ones_like.default")
@rule("self:T", *(f"aten.{name}.default" for name in (
    "abs", "bitwise_not", "ceil", "cos", "exp", "floor", "hardsigmoid", "hardswish", "log",
    "log10", "logical_not", "neg", "reciprocal", "relu", "round", "rsqrt", "sigmoid", "silu",
    "sin", "sqrt", "tanh", "trunc", "erf", "sign")))
@rule("self:T value:n", *(f"aten.{name}.Scalar" for name in ("eq", "ne", "lt", "le", "gt", "ge")),
      "aten.pow.Tensor_Scalar", "aten.mul.Scalar", "aten.div.Scalar", "aten.fmod.Scalar",
      "aten.remainder.Scalar", "aten.leaky_relu.default", "aten.hardshrink.default")
@rule("self:T value:n alpha:n?", "aten.add.Scalar", "aten.sub.Scalar", "aten.rsub.Scalar")
@rule("self:T fill_value:n *:*", "aten.full_like.default")
@rule("self:T min:f max:f", "aten.hardtanh.default")
@rule("self:T min:f? max:f?", "aten.clamp.default")
def same(x, *_others):
    return (x,)


@rule("self:T approximate:s", "aten.gelu.default")
def gelu(x, approximate):
    if approximate not in GELU:
        fail("approximate", f"expected one of {GELU}, got {approximate!r}")
    return (x,)


@rule("self:T other:T", *(f"aten.{name}.Tensor" for name in (
    "mul", "div", "eq", "ne", "lt", "le", "gt", "ge", "bitwise_and", "bitwise_or",
    "bitwise_xor", "fmod", "remainder")),
      "aten.minimum.default", "aten.maximum.default", "aten.pow.Tensor_Tensor",
      "aten.logical_and.default", "aten.logical_or.default", "aten.logical_xor.default")
@rule("self:T other:T alpha:n", "aten.add.Tensor", "aten.sub.Tensor")
def binary(x, y, *_alpha):
    return (broadcast(x, y),)


@rule("self:T other:T rounding_mode:s?", "aten.div.Tensor_mode")
def div_mode(x, y, mode):
    if mode not in ROUNDING:
        fail("rounding_mode", f"expected Null, 'floor' or 'trunc', got {mode!r}")
    return (broadcast(x, y),)


@rule("condition:T.bool self:T other:T", "aten.where.self")
def where(condition, x, y):
    return (broadcast(condition, x, y),)


@rule("self:T src:T non_blocking:-", "aten.copy.default")
def copy(x, source):
    need_broadcast(source, x, "src")
    return (x,)


# Creators


@rule("size:[i] fill_value:n *:*", "aten.full.default")
@rule("size:[i] *:*", "aten.zeros.default", "aten.ones.default")
def filled(size, *_value):
    return (tuple(at_least(number, 0, "size") for number in size),)


@rule("s:n *:*", "aten.scalar_tensor.default")
def scalar(_value):
    return ((),)


@rule("start:n end:n step:n *:*", "aten.arange.start_step")
def arange(start, end, step):
    for name, value in (("start", start), ("end", end), ("step", step)):
        if not math.isfinite(value):
            fail(name, f"expected a finite number, got {value}")
    if not step:
        fail("step", "expected a number other than 0")
    count = (end - start) / step
    if count < 0 or math.isinf(count):
        fail("step", f"does not lead from {start} to {end}: {step}")
    return ((math.ceil(count),),)
