"""Further operators whose results are parts of a tensor: all of them, a diagonal, a triangle."""

from __future__ import annotations

from vkrt.ops.arguments import dimension
from vkrt.ops.copying import Walk, emit
from vkrt.ops.dtypes import FIRST, ONE
from vkrt.ops.registry import op
from vkrt.ops.shape import part, select, source_of, split
from vkrt.ops.sizes import at_least, fail, wrap
from vkrt.shader import kind
from vkrt.work.tensor import row_major


def unbind_sizes(x, dim):
    if not x:
        fail("self", "a 0-d tensor cannot be split")
    dim = wrap(dim or 0, len(x))
    return ((*x[:dim], *x[dim + 1:]),) * x[dim]


@op("aten.unbind_copy.int", "self:T dim:i?", sizes=unbind_sizes, dtypes=FIRST,
    kernels="aten::{}.int_out")
def _unbind_copy(cx, node, x, dim):
    for index, out in enumerate(node.outs):
        if cx.used(out):
            select(cx, x, out, dimension(dim or 0, x.rank), index)


def split_sizes(x, size, dim):
    if not x:
        fail("self", "a 0-d tensor cannot be split")
    dim = wrap(dim or 0, len(x))
    at_least(size, 0 if not x[dim] else 1, "split_size")
    starts = range(0, x[dim], size) if x[dim] else [0]
    return tuple((*x[:dim], min(size, x[dim] - start), *x[dim + 1:]) for start in starts)


@op("aten.split_copy.Tensor", "self:T split_size:i dim:i?", sizes=split_sizes, dtypes=FIRST,
    kernels="aten::{}.Tensor_out")
def _split_copy(cx, node, x, _size, dim):
    split(cx, x, node.outs, dimension(dim or 0, x.rank))


def narrow_sizes(x, dim, start, length):
    if not x:
        fail("self", "a 0-d tensor cannot be narrowed")
    dim = wrap(dim, len(x))
    first = start + x[dim] if start < 0 else start
    if length < 0 or first < 0 or first + length > x[dim]:
        fail("length", f"{length} elements from {start} on reach past dimension {dim} of {list(x)}")
    return ((*x[:dim], length, *x[dim + 1:]),)


@op("aten.narrow_copy.default", "self:T dim:i start:i length:i", sizes=narrow_sizes, dtypes=FIRST,
    kernels="aten::{}.out")
def _narrow_copy(cx, node, x, dim, start, _length):
    dim = dimension(dim, x.rank)
    part(cx, x, node.outs[0], dim, start + x.sizes[dim] if start < 0 else start)


def diagonal_sizes(x, offset, dim1, dim2):
    first = wrap(dim1 or 0, len(x), "dim1")
    second = wrap(1 if dim2 is None else dim2, len(x), "dim2")
    if first == second:
        fail("dim2", f"expected another dimension than dim1, {first}")
    offset = offset or 0
    length = min(x[first] + min(offset, 0), x[second] - max(offset, 0))
    return ((*(n for d, n in enumerate(x) if d not in (first, second)), max(length, 0)),)


@op("aten.diagonal_copy.default", "self:T offset:i? dim1:i? dim2:i?", sizes=diagonal_sizes,
    dtypes=FIRST, kernels="aten::{}.out")
def _diagonal_copy(cx, node, x, offset, dim1, dim2):
    """The elements with equal indices in two dimensions, as a new last dimension."""
    out, offset = node.outs[0], offset or 0
    first = dimension(dim1 or 0, x.rank)
    second = dimension(1 if dim2 is None else dim2, x.rank)
    source = source_of(cx, x, out)
    strides = source.strides()
    steps = [strides[d] for d in range(x.rank) if d not in (first, second)]
    base = max(offset, 0) * strides[second] + max(-offset, 0) * strides[first]
    walk = Walk(tuple(out.sizes), (*steps, strides[first] + strides[second]), base)
    emit(cx, cx.write(out), source, walk)


def triangle_sizes(x, _diagonal):
    if len(x) < 2:
        fail("self", f"expected at least rank 2, got sizes {list(x)}")
    return (x,)


@op("aten.tril.default aten.triu.default", "self:T diagonal:i?", sizes=triangle_sizes, dtypes=ONE,
    kernels="aten::{}.out")
def _triangle(cx, node, x, diagonal):
    """The matrices of the last two dimensions with zeros above or below a diagonal."""
    source = cx.read(x, row_major(x.rank))
    result = cx.write(node.outs[0], source.order, over=(source,))
    cx.dispatch("triangle", [*result.grid, result.packed, kind("triangle", node.name.upper()),
                             diagonal or 0], [result], [source], result.texels)
