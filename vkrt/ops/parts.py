"""Operators whose results are parts of a tensor: an index, a slice, all slices, a diagonal, a
triangle."""

from __future__ import annotations

from collections.abc import Sequence

from vkrt.graph.symbols import RuntimeScalar
from vkrt.ops.dtypes import FIRST, ONE
from vkrt.ops.operator import RuntimeScalarRule
from vkrt.ops.positions import slice_at, slice_fits
from vkrt.ops.registry import op
from vkrt.ops.sizes import at_least, fail, need_least_rank, wrap
from vkrt.ops.strided import Strided
from vkrt.ops.strided_copy import copy_strided
from vkrt.ops.views import part_offset, reshape
from vkrt.shader import opcode
from vkrt.work.tensor import Tensor, row_major


def _need_dim(x, dim, refusal="cannot be split"):
    """A dimension of a tensor that has some, counted from the front."""
    if not x:
        fail("self", f"a 0-d tensor {refusal}")
    return wrap(dim or 0, len(x))


def select_sizes(x, dim, index):
    dim = _need_dim(x, dim, "has nothing to select from")
    if not -x[dim] <= index < x[dim]:
        fail("index", f"expected an index of a dimension of size {x[dim]}, got {index}")
    return (x[:dim] + x[dim + 1:],)


def sliced(size: int, start: int | None, end: int | None, step: int) -> tuple[int, int]:
    """First index and number of indices of a slice of a dimension."""
    at_least(step, 1, "step")

    def place(index: int, low: int) -> int:
        return min(max(index + size if index < 0 else index, low), size)

    first = place(0 if start is None else start, 0)
    last = place(size if end is None else end, first)
    return first, -(-(last - first) // step)


def slice_sizes(x, dim, start, end, step):
    dim = _need_dim(x, dim, "cannot be sliced")
    count = sliced(x[dim], start, end, 1 if step is None else step)[1]
    return ((*x[:dim], count, *x[dim + 1:]),)


def split_sizes(x, sizes, dim):
    dim = _need_dim(x, dim)
    if sum(at_least(n, 0, "sizes") for n in sizes) != x[dim]:
        fail("sizes", f"expected a sum of {x[dim]}, got {list(sizes)}")
    return tuple((*x[:dim], n, *x[dim + 1:]) for n in sizes)


def part(cx, tensor: Tensor, out: Tensor, dim: int, start: int, step: int = 1,
          selects: bool = False) -> None:
    """Makes `out` the indices start, start + step, .. of a dimension. With `selects` this is one
    index, and `out` lacks the dimension."""
    size = 1 if selects else out.sizes[dim]

    def view(where: Strided) -> Strided | None:
        found = where.part(dim, start, size, step)
        return found.without(dim) if selects and found is not None else found

    if cx.is_apart(tensor) and cx.leave(tensor, out, view):
        return
    source = cx.operand(tensor, out.dtype)
    order = source.order
    if selects:
        order = tuple(d - (d > dim) for d in order if d != dim)
    offset = part_offset(cx, source, dim, start, size) if step == 1 else None
    if offset is not None:
        cx.alias(out, source, order, offset)
        return
    if cx.leave(tensor, out, view):
        return
    dims, stride = list(source.dims()), source.strides()[dim]
    dims[dim] = size, step * stride
    copy_strided(cx, cx.write(out, order), source,
                 [dims[d] for d in source.order if not (selects and d == dim)], start * stride)


def select(cx, x: Tensor, out: Tensor, dim: int, index: int) -> None:
    """Makes `out` one index of a dimension."""
    if x.sizes[dim] == 1:
        reshape(cx, x, out)
    else:
        part(cx, x, out, dim, index, selects=True)


@op("aten.select_copy.int", "self:T dim:i index:i", sizes=select_sizes, dtypes=FIRST)
def _select_copy(cx, node, x, dim, index):
    dim = wrap(dim, x.rank)
    select(cx, x, node.outs[0], dim, index % x.sizes[dim])


@op("aten.slice_copy.Tensor", "self:T dim:i start:i? end:i? step:i?", sizes=slice_sizes,
    dtypes=FIRST,
    runtime_scalar=RuntimeScalarRule(
        ("start", "end"), lambda x, dim, start, end, _step: x.sizes[dim] - (end - start),
        fits=slice_fits, is_reason=False))
def _slice_copy(cx, node, x, dim, start, _end, step):
    dim = wrap(dim, x.rank)
    if isinstance(start, RuntimeScalar):
        slice_at(cx, x, node.outs[0], dim, start)
        return
    start, _ = sliced(x.sizes[dim], start, None, 1)
    part(cx, x, node.outs[0], dim, start, 1 if step is None else step)


@op("aten.split_with_sizes_copy.default", "self:T sizes:[i] dim:i", sizes=split_sizes, dtypes=FIRST)
def _split_with_sizes_copy(cx, node, x, _sizes, dim):
    split(cx, x, node.outs, wrap(dim, x.rank))


def split(cx, x: Tensor, outs: Sequence[Tensor], dim: int) -> None:
    """Makes `outs` the parts of a dimension, one behind the other."""
    start = 0
    for out in outs:
        if cx.used(out):
            part(cx, x, out, dim, start)
        start += out.sizes[dim]


def unbind_sizes(x, dim):
    dim = _need_dim(x, dim)
    return ((*x[:dim], *x[dim + 1:]),) * x[dim]


@op("aten.unbind_copy.int", "self:T dim:i?", sizes=unbind_sizes, dtypes=FIRST)
def _unbind_copy(cx, node, x, dim):
    for index, out in enumerate(node.outs):
        if cx.used(out):
            select(cx, x, out, wrap(dim or 0, x.rank), index)


def chunk_sizes(x, size, dim):
    dim = _need_dim(x, dim)
    at_least(size, 0 if not x[dim] else 1, "split_size")
    starts = range(0, x[dim], size) if x[dim] else [0]
    return tuple((*x[:dim], min(size, x[dim] - start), *x[dim + 1:]) for start in starts)


@op("aten.split_copy.Tensor", "self:T split_size:i dim:i?", sizes=chunk_sizes, dtypes=FIRST)
def _split_copy(cx, node, x, _size, dim):
    split(cx, x, node.outs, wrap(dim or 0, x.rank))


def narrow_sizes(x, dim, start, length):
    dim = _need_dim(x, dim, "cannot be narrowed")
    first = start + x[dim] if start < 0 else start
    if length < 0 or first < 0 or first + length > x[dim]:
        fail("length", f"{length} elements from {start} on reach past dimension {dim} of {list(x)}")
    return ((*x[:dim], length, *x[dim + 1:]),)


@op("aten.narrow_copy.default", "self:T dim:i start:i length:i", sizes=narrow_sizes, dtypes=FIRST)
def _narrow_copy(cx, node, x, dim, start, _length):
    dim = wrap(dim, x.rank)
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
    dtypes=FIRST)
def _diagonal_copy(cx, node, x, offset, dim1, dim2):
    """The elements whose indices in two dimensions are `offset` apart, as a new last dimension."""
    out, offset = node.outs[0], offset or 0
    first = wrap(dim1 or 0, x.rank)
    second = wrap(1 if dim2 is None else dim2, x.rank)
    source = cx.operand(x, out.dtype)
    strides = source.strides()
    steps = [strides[d] for d in range(x.rank) if d not in (first, second)]
    base = max(offset, 0) * strides[second] + max(-offset, 0) * strides[first]
    steps.append(strides[first] + strides[second])
    copy_strided(cx, cx.write(out), source, list(zip(out.sizes, steps, strict=True)), base)


def triangle_sizes(x, _diagonal):
    need_least_rank(x, 2)
    return (x,)


@op("aten.tril.default aten.triu.default", "self:T diagonal:i?", sizes=triangle_sizes, dtypes=ONE)
def _triangle(cx, node, x, diagonal):
    """The matrices of the last two dimensions with zeros above or below a diagonal."""
    source = cx.read(x, row_major(x.rank))
    result = cx.write(node.outs[0], source.order, over=(source,))
    cx.map_texels("triangle", result, [source],
                  [opcode("triangle", node.name.upper()), diagonal or 0])
