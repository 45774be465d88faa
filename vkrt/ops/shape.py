"""Operators that only move elements, or only rename dimensions."""

from __future__ import annotations

import math
from dataclasses import replace

from vkrt.graph.graph import Node
from vkrt.ops.broadcast import expansion
from vkrt.ops.dtypes import FIRST
from vkrt.ops.registry import op
from vkrt.ops.rows import POINTWISE, Places, RowRule, Rows, Window
from vkrt.ops.sizes import at_least, fail, need_rank, same, wrap, wrap_all
from vkrt.ops.strided import permutation_of
from vkrt.ops.strided_copy import MAX_DIMS, StridedDim, copy_strided, joined
from vkrt.ops.views import reshape
from vkrt.work.tensor import Operand

# Repeated dimensions that always fit into one strided copy: each is two of its dimensions, and all
# that lie between two of them are one.
REPEATED_AT_ONCE = 3


# Other names of the same elements


def view_sizes(x, size):
    known = math.prod(at_least(n, 0, "size") for n in size if n != -1)
    numel = math.prod(x)
    free = size.count(-1)
    if free > 1:
        fail("size", f"at most one -1 can be worked out, got {list(size)}")
    if free and known and numel % known == 0:
        size = tuple(numel // known if n == -1 else n for n in size)
    elif free or known != numel:
        fail("size", f"{list(size)} does not hold the {numel} elements of {list(x)}")
    return (size,)


def squeeze_sizes(x, dims):
    chosen = wrap_all((dims,) if isinstance(dims, int) else dims, len(x))
    return (tuple(n for d, n in enumerate(x) if n != 1 or d not in chosen),)


def unsqueeze_sizes(x, dim):
    dim = wrap(dim, len(x) + 1)
    return ((*x[:dim], 1, *x[dim:]),)


def _same_rows(node: Node, dim: int) -> Places | None:
    """The dimension of the argument with the same rows: of the same size, and with dimensions of
    the same product before it. None without one."""
    x, out = node.args[0], node.outs[0]
    before = math.prod(out.sizes[:dim])
    for own, size in enumerate(x.sizes):
        if size == out.sizes[dim] and math.prod(x.sizes[:own]) == before:
            return [(x, Window(own))]
    return None


def _viewed_strip(node: Node, dim: int, rows: Rows) -> Node:
    sizes = list(node.outs[0].sizes)
    sizes[dim] = rows[1] - rows[0]
    return replace(node, args=(node.args[0], sizes, *node.args[2:]))


RESHAPED = RowRule(_same_rows)
VIEWED = RowRule(_same_rows, _viewed_strip)


@op("aten.view.default aten._unsafe_view.default", "self:T size:[i]", sizes=view_sizes,
    dtypes=FIRST, kernels="", rows=VIEWED)
@op("aten.view_copy.default", "self:T size:[i]", sizes=view_sizes, dtypes=FIRST,
    kernels="aten::{}.out executorch_prim::et_view.default", rows=VIEWED)
@op("aten.squeeze_copy.dims", "self:T dims:[i]", sizes=squeeze_sizes, dtypes=FIRST, rows=RESHAPED)
@op("aten.squeeze_copy.dim", "self:T dim:i", sizes=squeeze_sizes, dtypes=FIRST, rows=RESHAPED)
@op("aten.unsqueeze_copy.default", "self:T dim:i", sizes=unsqueeze_sizes, dtypes=FIRST,
    rows=RESHAPED)
def _view(cx, node, x, _sizes):
    reshape(cx, x, node.outs[0])


@op("et_vk.prepack.default", "self:T *:*", sizes=same, dtypes=FIRST)
@op("dim_order_ops._clone_dim_order.default", "self:T *:*", sizes=same, dtypes=FIRST,
    rows=POINTWISE)
@op("aten.clone.default", "self:T *:*", sizes=same, dtypes=FIRST,
    kernels="aten::{}.out aten::detach_copy.out aten::lift_fresh_copy.out", rows=POINTWISE)
@op("aten.alias_copy.default", "self:T *:*", sizes=same, dtypes=FIRST, rows=POINTWISE)
def _clone(cx, node, x):
    if cx.is_apart(x) and cx.leave(x, node.outs[0], lambda where: where):
        return
    source = cx.operand(x, node.outs[0].dtype)
    cx.alias(node.outs[0], source, source.order)


# Dimensions in another order


def permute_sizes(x, dims):
    order = [wrap(d, len(x), "dims") for d in dims]
    if sorted(order) != list(range(len(x))):
        fail("dims", f"expected a permutation of {len(x)} dimensions, got {list(dims)}")
    return (tuple(x[d] for d in order),)


def t_sizes(x):
    need_rank(x, (0, 1, 2), "self")
    return (x[::-1],)


def transpose_sizes(x, dim0, dim1):
    a, b = wrap(dim0, len(x), "dim0"), wrap(dim1, len(x), "dim1")
    sizes = list(x)
    if x:
        sizes[a], sizes[b] = sizes[b], sizes[a]
    return (tuple(sizes),)


PERMUTED = RowRule(lambda node, dim: [(node.args[0], Window(permutation_of(node)[dim]))])


@op("aten.permute.default", "self:T dims:[i]", sizes=permute_sizes, dtypes=FIRST, kernels="",
    rows=PERMUTED)
@op("aten.permute_copy.default", "self:T dims:[i]", sizes=permute_sizes, dtypes=FIRST,
    rows=PERMUTED)
@op("aten.t_copy.default", "self:T", sizes=t_sizes, dtypes=FIRST, rows=PERMUTED)
@op("aten.transpose_copy.int", "self:T dim0:i dim1:i", sizes=transpose_sizes, dtypes=FIRST,
    rows=PERMUTED)
def _permute(cx, node, x, *_dims):
    permutation = permutation_of(node)
    if cx.is_apart(x) and cx.leave(x, node.outs[0], lambda where: where.permuted(permutation)):
        return
    source = cx.read(x)
    cx.alias(node.outs[0], source, tuple(permutation.index(d) for d in source.order))


# Elements repeated


def expand_sizes(x, size, _implicit):
    new = len(size) - len(x)
    if new < 0:
        fail("size", f"expected at least {len(x)} sizes, got {list(size)}")
    result = []
    for place, number in enumerate(size):
        old = x[place - new] if place >= new else None
        if number == -1 and old is not None:
            number = old
        if number < 0 or old not in (None, 1, number):
            fail("size", f"{list(x)} cannot be expanded to {list(size)}")
        result.append(number)
    return (tuple(result),)


def repeat_sizes(x, repeats):
    new = len(repeats) - len(x)
    if new < 0:
        fail("repeats", f"expected at least {len(x)} numbers, got {list(repeats)}")
    return (tuple(at_least(times, 0, "repeats") * n
                  for times, n in zip(repeats, (1,) * new + x, strict=True)),)


@op("aten.expand_copy.default", "self:T size:[i] implicit:b?", sizes=expand_sizes, dtypes=FIRST,
    broadcasts="self")
def _expand_copy(cx, node, x, _size, _implicit):
    out = node.outs[0]
    if x.numel == out.numel:
        reshape(cx, x, out)
        return
    lifted = cx.operand(x, out.dtype).lifted(out.rank)
    order = lifted.order
    copy_strided(cx, cx.write(out, order), lifted, expansion(lifted, out.sizes, order))


@op("aten.repeat.default", "self:T repeats:[i]", sizes=repeat_sizes, dtypes=FIRST)
def _repeat(cx, node, x, repeats):
    out = node.outs[0]
    if x.numel == out.numel:
        reshape(cx, x, out)
        return
    lifted, repeats = cx.operand(x, out.dtype).lifted(out.rank), list(repeats)
    order = lifted.order
    while len(joined(dims := _repetition(lifted, repeats))) > MAX_DIMS:
        # Too much for one copy: repeats the innermost dimensions first.
        some = [d for d in order if repeats[d] > 1][-REPEATED_AT_ONCE:]
        now = [times if d in some else 1 for d, times in enumerate(repeats)]
        partial = cx.temporary([n * size for n, size in zip(now, lifted.sizes)], lifted.dtype,
                               order)
        copy_strided(cx, partial, lifted, _repetition(lifted, now))
        lifted, repeats = partial, [times // n for times, n in zip(repeats, now)]
    copy_strided(cx, cx.write(out, order), lifted, dims)


def _repetition(source: Operand, repeats: list[int]) -> list[StridedDim]:
    """The strided copy that repeats every dimension of a tensor so many times."""
    dims = source.dims()
    return [dim for d in source.order for dim in ((repeats[d], 0), dims[d])]


def flip_sizes(x, dims):
    wrap_all(dims, len(x))
    return (x,)


@op("aten.flip.default", "self:T dims:[i]", sizes=flip_sizes, dtypes=FIRST)
def _flip(cx, node, x, dims):
    flipped = {wrap(d, x.rank) for d in dims} if x.rank else set()
    source = cx.operand(x, node.outs[0].dtype)
    order, dims = source.order, source.dims()
    copy_strided(cx, cx.write(node.outs[0], order), source,
                 [(dims[d][0], -dims[d][1] if d in flipped else dims[d][1]) for d in order],
                 sum((dims[d][0] - 1) * dims[d][1] for d in flipped))


# Elements by their numbers


def unfold_sizes(x, dim, size, step):
    dim = wrap(dim, len(x))
    length = x[dim] if x else 1
    at_least(step, 1, "step")
    if not 0 <= size <= length:
        fail("size", f"expected at most {length}, the size of dimension {dim}, got {size}")
    if not x:
        return ((size,),)
    return ((*x[:dim], (length - size) // step + 1, *x[dim + 1:], size),)


@op("aten.unfold_copy.default", "self:T dim:i size:i step:i", sizes=unfold_sizes, dtypes=FIRST)
def _unfold_copy(cx, node, x, dim, _size, step):
    """Places of a dimension, their elements as a new last dimension."""
    out = node.outs[0]
    source = cx.operand(x, out.dtype)
    if x.rank == 0:
        copy_strided(cx, cx.write(out), source, [(out.sizes[0], 1)])
        return
    dim = wrap(dim, x.rank)
    strides = list(source.strides())
    strides.append(strides[dim])
    strides[dim] *= step
    copy_strided(cx, cx.write(out), source, list(zip(out.sizes, strides, strict=True)))


def as_strided_sizes(x, size, stride, offset):
    if len(stride) != len(size):
        fail("stride", f"expected {len(size)} numbers, got {list(stride)}")
    first = at_least(offset or 0, 0, "storage_offset")
    last = first + sum((at_least(n, 0, "size") - 1) * at_least(step, 0, "stride")
                       for n, step in zip(size, stride, strict=True))
    if math.prod(size) and last >= math.prod(x):
        fail("size", f"reaches element {last} of {math.prod(x)}")
    return (size,)


@op("aten.as_strided_copy.default", "self:T size:[i] stride:[i] storage_offset:i?",
    sizes=as_strided_sizes, dtypes=FIRST)
def _as_strided_copy(cx, node, x, _size, strides, offset):
    """Elements of x by their numbers, with x contiguous."""
    out = node.outs[0]
    source = cx.operand(x, out.dtype)
    if not source.raw:
        flat = cx.temporary((x.numel,), source.dtype)
        copy_strided(cx, flat, source, source.dims())
        source = flat
    copy_strided(cx, cx.write(out), source, list(zip(out.sizes, strides, strict=True)), offset or 0)
