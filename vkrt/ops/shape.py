"""Operators that only move elements, or only rename dimensions."""

from __future__ import annotations

from vkrt.errors import UnsupportedError
from vkrt.graph.graph import Node
from vkrt.ops.arguments import (
    argument,
    dimension,
    dimensions,
    ints,
    slice_end,
    tensor_argument,
)
from vkrt.ops.broadcast import expansion, lifted_order
from vkrt.ops.copying import MAX_DIMS, Walk, emit
from vkrt.ops.registry import op
from vkrt.ops.views import part_offset, reshape
from vkrt.pte.coerce import as_int
from vkrt.work.tensor import Operand, Tensor

# Repeated dimensions that always fit into one walk: each is two dimensions of it, what lies between
# them one.
REPEATED_AT_ONCE = 3


@op("aten.view_copy.default", "aten._unsafe_view.default", "aten.view.default",
    "aten.squeeze_copy.dims", "aten.squeeze_copy.dim", "aten.unsqueeze_copy.default")
def _view(cx, node):
    reshape(cx, tensor_argument(node, 0), node.outs[0])


def _source(cx, tensor: Tensor, out: Tensor) -> Operand:
    """The operand of a tensor, raw or not, in the dtype of the result."""
    source = cx.operand(tensor)
    return source if source.dtype == out.dtype else cx.read(tensor)


@op("aten.clone.default", "dim_order_ops._clone_dim_order.default", "aten.alias_copy.default",
    "et_vk.prepack.default")
def _clone(cx, node):
    tensor, out = tensor_argument(node, 0), node.outs[0]
    source = _source(cx, tensor, out)
    cx.alias(out, source, source.order)


def _permute(cx, node: Node, permutation: tuple[int, ...]) -> None:
    source = cx.read(tensor_argument(node, 0))
    cx.alias(node.outs[0], source, tuple(permutation.index(d) for d in source.order))


@op("aten.permute_copy.default", "aten.permute.default")
def _permute_copy(cx, node):
    rank = tensor_argument(node, 0).rank
    _permute(cx, node, tuple(dimension(d, rank) for d in ints(node.args[1])))


@op("aten.t_copy.default")
def _t_copy(cx, node):
    _permute(cx, node, tuple(reversed(range(tensor_argument(node, 0).rank))))


@op("aten.transpose_copy.int")
def _transpose_copy(cx, node):
    rank = tensor_argument(node, 0).rank
    a, b = (dimension(node.args[i], rank) for i in (1, 2))
    order = list(range(rank))
    if rank:
        order[a], order[b] = b, a
    _permute(cx, node, tuple(order))


@op("aten.expand_copy.default")
def _expand_copy(cx, node):
    tensor, out = tensor_argument(node, 0), node.outs[0]
    if tensor.numel == out.numel:
        reshape(cx, tensor, out)
        return
    source = _source(cx, tensor, out)
    order = lifted_order(source.order, out.rank)
    lifted = source.with_view((1,) * (out.rank - tensor.rank) + tuple(tensor.sizes), order)
    emit(cx, cx.write(out, order), lifted, expansion(lifted, out.sizes, order))


@op("aten.repeat.default")
def _repeat(cx, node):
    tensor, out = tensor_argument(node, 0), node.outs[0]
    if tensor.numel == out.numel:
        reshape(cx, tensor, out)
        return
    source = _source(cx, tensor, out)
    order = lifted_order(source.order, out.rank)
    lifted = source.with_view((1,) * (out.rank - tensor.rank) + tuple(tensor.sizes), order)
    repeats = list(ints(node.args[1]))
    walk = _repetition(lifted, repeats)
    while len(walk.collapsed().sizes) > MAX_DIMS:
        # Too much for one walk: the innermost ones first.
        some = [d for d in order if repeats[d] > 1][-REPEATED_AT_ONCE:]
        now = [times if d in some else 1 for d, times in enumerate(repeats)]
        partial = cx.temporary([n * size for n, size in zip(now, lifted.sizes)], lifted.dtype,
                               order)
        emit(cx, partial, lifted, _repetition(lifted, now))
        lifted, repeats = partial, [times // n for times, n in zip(repeats, now)]
        walk = _repetition(lifted, repeats)
    emit(cx, cx.write(out, order), lifted, walk)


def _repetition(source: Operand, repeats: list[int]) -> Walk:
    """The walk over a tensor that gives every dimension so many times."""
    strides = source.strides()
    sizes = [size for d in source.order for size in (repeats[d], source.sizes[d])]
    return Walk(tuple(sizes), tuple(step for d in source.order for step in (0, strides[d])))


@op("aten.flip.default")
def _flip(cx, node):
    tensor, out = tensor_argument(node, 0), node.outs[0]
    flipped = dimensions(node.args[1], tensor.rank) if ints(node.args[1]) else ()
    source = _source(cx, tensor, out)
    strides = source.strides()
    base = sum((tensor.sizes[d] - 1) * strides[d] for d in flipped)
    order = source.order
    walk = Walk(tuple(tensor.sizes[d] for d in order),
                tuple(-strides[d] if d in flipped else strides[d] for d in order), base)
    emit(cx, cx.write(out, order), source, walk)


def _part(cx, tensor: Tensor, out: Tensor, dim: int, start: int, step: int = 1,
          selects: bool = False) -> None:
    """Makes `out` the indices start, start + step, .. of a dimension; one of them for `selects`."""
    source = _source(cx, tensor, out)
    order = source.order
    if selects:
        order = tuple(d - (d > dim) for d in order if d != dim)
    size = 1 if selects else out.sizes[dim]
    offset = part_offset(cx, source, dim, start, size) if step == 1 else None
    if offset is not None:
        cx.alias(out, source, order, offset)
        return
    strides = list(source.strides())
    base = start * strides[dim]
    strides[dim] *= step
    left = [d for d in source.order if not (selects and d == dim)]
    sizes = [size if d == dim else source.sizes[d] for d in left]
    walk = Walk(tuple(sizes) or (1,), tuple(strides[d] for d in left) or (1,), base)
    emit(cx, cx.write(out, order), source, walk)


@op("aten.select_copy.int")
def _select_copy(cx, node):
    tensor, out = tensor_argument(node, 0), node.outs[0]
    dim = dimension(node.args[1], tensor.rank)
    index = as_int(node.args[2])
    index += tensor.sizes[dim] if index < 0 else 0
    if not 0 <= index < tensor.sizes[dim]:
        raise UnsupportedError(f"{cx.where()}: index {node.args[2]} of a dimension of size "
                               f"{tensor.sizes[dim]}")
    if tensor.sizes[dim] == 1:
        reshape(cx, tensor, out)
    else:
        _part(cx, tensor, out, dim, index, selects=True)


@op("aten.slice_copy.Tensor")
def _slice_copy(cx, node):
    tensor, out = tensor_argument(node, 0), node.outs[0]
    dim = dimension(argument(node, 1, 0), tensor.rank)
    size = tensor.sizes[dim]
    start = slice_end(argument(node, 2), size, 0)
    _part(cx, tensor, out, dim, start, as_int(argument(node, 4, 1)))


@op("aten.split_with_sizes_copy.default")
def _split_with_sizes_copy(cx, node):
    tensor = tensor_argument(node, 0)
    dim = dimension(argument(node, 2, 0), tensor.rank)
    start = 0
    for out, size in zip(node.outs, ints(node.args[1]), strict=True):
        if cx.used(out):
            _part(cx, tensor, out, dim, start)
        start += size


@op("aten.unfold_copy.default")
def _unfold_copy(cx, node):
    """Args x, dim, size, step: windows of a dimension, their elements as a new last dimension."""
    tensor, out = tensor_argument(node, 0), node.outs[0]
    source = _source(cx, tensor, out)
    if tensor.rank == 0:
        emit(cx, cx.write(out), source, Walk(out.sizes, (1,)))
        return
    dim = dimension(node.args[1], tensor.rank)
    strides = list(source.strides())
    within = strides[dim]
    strides[dim] *= as_int(node.args[3])
    emit(cx, cx.write(out), source, Walk(tuple(out.sizes), (*strides, within)))


@op("aten.as_strided_copy.default")
def _as_strided_copy(cx, node):
    """Args x, sizes, strides, offset: elements of x, contiguous, by their numbers."""
    tensor, out = tensor_argument(node, 0), node.outs[0]
    source = _source(cx, tensor, out)
    if not source.raw:
        flat = cx.temporary((tensor.numel,), source.dtype)
        emit(cx, flat, source, Walk(source.sizes or (1,), source.strides() or (1,)))
        source = flat
    emit(cx, cx.write(out), source,
         Walk(tuple(out.sizes) or (1,), ints(node.args[2]) or (1,), as_int(argument(node, 3, 0))))
