"""Shape rules of the kernels that run on the host (see `vkrt.host`)."""

from __future__ import annotations

import math

from vkrt.ops.shapes.indexing import indexed
from vkrt.ops.shapes.pointwise import div_mode
from vkrt.ops.shapes.rules import (
    broadcast,
    fail,
    need_broadcast,
    need_sizes,
    rule,
    wrap,
    wrap_all,
)

UNARY = ("acos acosh asin asinh atan atanh cosh exp2 expm1 isinf isnan log1p log2 sinh tan")


@rule("self:T", *(f"aten::{name}.out" for name in UNARY.split()))
@rule("self:T alpha:n? scale:n? input_scale:n?", "aten::elu.out")
def same(x, *_others):
    return (x,)


@rule("self:T other:n", *(f"aten::bitwise_{name}.Scalar_out" for name in ("and", "or", "xor")))
def with_number(x, _number):
    return (x,)


@rule("self:T other:n rounding_mode:s?", "aten::div.Scalar_mode_out")
def divided(x, _number, mode):
    return div_mode(x, (), mode)


@rule("self:n exponent:T", "aten::pow.Scalar_out")
def power(_number, exponent):
    return (exponent,)


@rule("self:T min:T? max:T?", "aten::clamp.Tensor_out")
def clamp(x, low, high):
    return (broadcast(x, *(bound for bound in (low, high) if bound is not None)),)


@rule("self:T dim:i", "aten::glu.out")
def gated(x, dim):
    dim = wrap(dim, len(x))
    if not x or x[dim] % 2:
        fail("dim", f"expected an even number of elements in dimension {dim} of {list(x)}")
    return ((*x[:dim], x[dim] // 2, *x[dim + 1:]),)


@rule("self:T diagonal:i?", "aten::tril.out", "aten::triu.out")
def triangle(x, _diagonal):
    if len(x) < 2:
        fail("self", f"expected at least rank 2, got sizes {list(x)}")
    return (x,)


@rule("self:T other:T", "aten::atan2.out", "aten::floor_divide.out",
      "aten::bitwise_left_shift.Tensor_out", "aten::bitwise_right_shift.Tensor_out")
@rule("self:T mask:T.bool value:n", "aten::masked_fill.Scalar_out")
def binary(x, y, *_value):
    return (broadcast(x, y),)


# Along dimensions




@rule("self:T dim:i dtype:-", "aten::cumsum.out", "aten::cumprod.out")
def running(x, dim):
    wrap(dim, len(x))
    return (x,)


@rule("self:T dim:i? descending:b?", "aten::sort.values")
@rule("self:T stable:- dim:i? descending:b?", "aten::sort.values_stable")
def sort(x, dim, _descending):
    wrap(-1 if dim is None else dim, len(x))
    return x, x


@rule("self:T k:i dim:i? largest:b? sorted:b?", "aten::topk.values")
def topk(x, k, dim, _largest, _sorted):
    dim = wrap(-1 if dim is None else dim, len(x))
    size = x[dim] if x else 1
    if not 0 <= k <= size or (not x and k != 1):
        fail("k", f"expected at most {size}, the size of dimension {dim}, got {k}")
    sizes = (*x[:dim], k, *x[dim + 1:]) if x else ()
    return sizes, sizes


# Places


@rule("self:T indices:[T.int32?] values:T accumulate:b?", "aten::index_put.out")
def index_put(x, indices, values, _accumulate):
    need_broadcast(values, indexed(x, indices), "values")
    return (x,)


@rule("self:T dim:i index:T.int32 src:T", "aten::scatter.src_out", "aten::scatter_add.out")
def scatter(x, dim, index, source):
    target, places, values = x or (1,), index or (1,), source or (1,)
    dim = wrap(dim, len(x))
    if not len(target) == len(places) == len(values):
        fail("index", f"expected rank {len(x)} of it and of the source, got sizes {list(index)} "
             f"and {list(source)}")
    for d, (count, size, given) in enumerate(zip(places, target, values, strict=True)):
        if (d != dim and count > size) or count > given or (math.prod(places) and not size):
            fail("index", f"sizes {list(index)} reach past {list(x)} or {list(source)}")
    return (x,)


@rule("self:T dim:i index:T.int32 value:n", "aten::scatter.value_out")
def scatter_value(x, dim, index, _value):
    return scatter(x, dim, index, index)


@rule("self:T src:T dim:i index:i", "aten::select_scatter.out")
def select_scatter(x, source, dim, index):
    if not x:
        fail("self", "a 0-d tensor has nothing to select from")
    dim = wrap(dim, len(x))
    if not -x[dim] <= index < x[dim]:
        fail("index", f"expected an index of a dimension of size {x[dim]}, got {index}")
    need_sizes(source, x[:dim] + x[dim + 1:], "src")
    return (x,)


@rule("self:T offset:i? dim1:i? dim2:i?", "aten::diagonal_copy.out")
def diagonal(x, offset, dim1, dim2):
    first, second = wrap(dim1 or 0, len(x), "dim1"), wrap(1 if dim2 is None else dim2, len(x),
                                                          "dim2")
    if first == second:
        fail("dim2", f"expected another dimension than dim1, {first}")
    offset = offset or 0
    length = min(x[first] + min(offset, 0), x[second] - max(offset, 0))
    return ((*(n for d, n in enumerate(x) if d not in (first, second)), max(length, 0)),)


@rule("tensors:[T] dim:i?", "aten::stack.out")
def stack(tensors, dim):
    if not tensors:
        fail("tensors", "expected at least one")
    for sizes in tensors:
        need_sizes(sizes, tensors[0], "tensors")
    dim = wrap(dim or 0, len(tensors[0]) + 1)
    return ((*tensors[0][:dim], len(tensors), *tensors[0][dim:]),)


@rule("self:T dim:i", "aten::unbind_copy.int_out")
def unbind(x, dim):
    if not x:
        fail("self", "a 0-d tensor cannot be split")
    dim = wrap(dim, len(x))
    return ((*x[:dim], *x[dim + 1:]),) * x[dim]


@rule("self:T shifts:[i] dims:[i]?", "aten::roll.out")
def roll(x, shifts, dims):
    wrap_all(dims or (), len(x))
    if len(shifts) != (len(dims) if dims else 1):
        fail("shifts", f"expected as many as dimensions, got {list(shifts)}")
    return (x,)
