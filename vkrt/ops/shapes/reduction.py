"""Shape rules of reductions, softmax and normalizations."""

from __future__ import annotations

import math

from vkrt.ops.shapes.rules import at_least, fail, need_sizes, rule, wrap, wrap_all


def reduced(x, dims, keepdim):
    """Sizes after a reduction of the dimensions `dims`."""
    if keepdim:
        return tuple(1 if d in dims else n for d, n in enumerate(x))
    return tuple(n for d, n in enumerate(x) if d not in dims)


@rule("self:T dim:[i]? keepdim:b? dtype:-", "aten.mean.dim", "aten.sum.dim_IntList")
def reduce(x, dims, keepdim):
    # To torch an empty list means all dimensions.
    return (reduced(x, wrap_all(dims or None, len(x), "dim"), bool(keepdim)),)


@rule("self:T dim:[i]? correction:n? keepdim:b?", "aten.var.correction")
@rule("self:T dim:[i]? unbiased:b? keepdim:b?", "aten.var.dim")
def variance(x, dims, _correction, keepdim):
    return (reduced(x, wrap_all(dims or None, len(x), "dim"), bool(keepdim)),)


@rule("self:T dim:[i]? keepdim:b?", "aten.amax.default", "aten.amin.default")
def extreme(x, dims, keepdim):
    chosen = wrap_all(dims or None, len(x), "dim")
    if not all(x[d] for d in chosen if x):
        fail("dim", f"nothing to choose from in {list(x)}")
    return (reduced(x, chosen, bool(keepdim)),)


@rule("self:T dim:i keepdim:b? dtype:-", "aten.prod.dim_int")
def prod(x, dim, keepdim):
    return (reduced(x, {wrap(dim, len(x))}, bool(keepdim)),)


@rule("self:T dtype:-", "aten.prod.default")
def prod_of_all(_x):
    return ((),)


@rule("self:T dim:i keepdim:b?", "aten.max.dim", "aten.min.dim")
def extreme_and_index(x, dim, keepdim):
    return extreme(x, (dim,), keepdim) * 2


@rule("self:T dim:i? keepdim:b?", "aten.argmax.default", "aten.argmin.default")
def arg_extreme(x, dim, keepdim):
    return extreme(x, None if dim is None else (dim,), keepdim)


@rule("self:T dim:i keepdim:b?", "aten.any.dim", "aten.all.dim")
def any_dim(x, dim, keepdim):
    return (reduced(x, {wrap(dim, len(x))}, bool(keepdim)),)


@rule("self:T dim:[i]? keepdim:b?", "aten.any.dims", "aten.all.dims")
def any_dims(x, dims, keepdim):
    return (reduced(x, wrap_all(dims, len(x), "dim"), bool(keepdim)),)


@rule("self:T", "aten.any.default", "aten.all.default")
def any_all(_x):
    return ((),)


@rule("self:T dim:i half_to_float:b?", "aten._softmax.default", "aten._log_softmax.default")
def softmax(x, dim, _half):
    wrap(dim, len(x))
    return (x,)


@rule("self:T normalized_shape:[i] weight:T? bias:T? eps:f", "aten.native_layer_norm.default")
def layer_norm(x, shape, weight, bias, _eps):
    start = len(x) - len(shape)
    if not shape or start < 0 or x[start:] != shape:
        fail("normalized_shape", f"expected the last sizes of {list(x)}, got {list(shape)}")
    need_sizes(weight, shape, "weight")
    need_sizes(bias, shape, "bias")
    moments = (*x[:start], *[1] * len(shape))
    return x, moments, moments


@rule("self:T weight:T? bias:T? N:i C:i HxW:i group:i eps:f", "aten.native_group_norm.default")
def group_norm(x, weight, bias, batch, channels, spatial, groups, _eps):
    if len(x) < 2:
        fail("self", f"expected at least rank 2, got sizes {list(x)}")
    for name, value, size in (("N", batch, x[0]), ("C", channels, x[1]),
                              ("HxW", spatial, math.prod(x[2:]))):
        if value != size:
            fail(name, f"expected {size} for sizes {list(x)}, got {value}")
    if channels % at_least(groups, 1, "group"):
        fail("group", f"{groups} does not divide {channels} channels")
    need_sizes(weight, (channels,), "weight")
    need_sizes(bias, (channels,), "bias")
    return x, (batch, groups), (batch, groups)


@rule("self:T weight:T? bias:T? running_mean:T running_var:T momentum:f eps:f",
      "aten._native_batch_norm_legit_no_training.default")
def batch_norm(x, weight, bias, mean, variance, *_numbers):
    if len(x) < 2:
        fail("self", f"expected at least rank 2, got sizes {list(x)}")
    for name, sizes in (("weight", weight), ("bias", bias), ("running_mean", mean),
                        ("running_var", variance)):
        need_sizes(sizes, x[1:2], name)
    return x, (0,), (0,)


@rule("self:T weight:T eps:f", "et_vk.rms_norm.default")
def rms_norm(x, weight, _eps):
    if not x:
        fail("self", "expected at least rank 1")
    need_sizes(weight, x[-1:], "weight")
    return (x,)
