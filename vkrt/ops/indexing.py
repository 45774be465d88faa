"""Operators that read elements at places that another tensor names.

torch refuses an index outside of its dimension. Here indices are on the device, where nobody can
refuse: a negative one counts from the end, and what is still outside becomes the first or the last
place. Nothing is ever read outside of a tensor.
"""

from __future__ import annotations

from collections.abc import Sequence

from vkrt.errors import UnsupportedError
from vkrt.graph.graph import Node
from vkrt.ops.arguments import dimension, tensor_argument
from vkrt.ops.broadcast import Broadcast
from vkrt.ops.context import ImageTooLarge
from vkrt.ops.copying import MAX_DIMS, Walk
from vkrt.ops.registry import op
from vkrt.ops.views import reshape
from vkrt.work.tensor import Operand, Tensor, row_major


@op("aten.embedding.default")
def _embedding(cx, node: Node) -> None:
    """Args weight [V, E], indices [..]; the result is [.., E].

    A constant weight stays as it lies in the file, in every storage: it may be mapped.
    """
    weight, indices = tensor_argument(node, 0), tensor_argument(node, 1)
    out = node.outs[0]
    if not cx.is_constant(weight):
        _rows(cx, cx.read(weight, (0, 1)), cx.read(indices, row_major(indices.rank)), out,
              row_major(out.rank), weight.sizes[0])
        return
    table = cx.weight(weight, (0, 1), flat=True)
    if cx.storage == "texture3d" and table.texels > cx.target.max_texels:
        raise ImageTooLarge(f"{weight} has {table.texels} texels, more than a texel view")
    _rows(cx, table, cx.read(indices, row_major(indices.rank)), out, row_major(out.rank),
          weight.sizes[0], shader="embedding")


@op("aten.index_select.default")
def _index_select(cx, node: Node) -> None:
    """Args x, dim, index [n] (or 0-d)."""
    tensor, index = tensor_argument(node, 0), tensor_argument(node, 2)
    if tensor.rank == 0:
        reshape(cx, tensor, node.outs[0])
        return
    _select(cx, tensor, node.outs[0], {dimension(node.args[1], tensor.rank): index})


@op("aten.index.Tensor")
def _index(cx, node: Node) -> None:
    """Args x, [index or None, ..]: indices are broadcast to common sizes, which take the place of
    the dimensions they index (the first place where those are not neighbours)."""
    tensor, out = tensor_argument(node, 0), node.outs[0]
    indices = {d: index for d, index in enumerate(node.args[1]) if index is not None}
    if not indices:
        reshape(cx, tensor, out)
        return
    _select(cx, tensor, out, indices)


def _select(cx, tensor: Tensor, out: Tensor, indices: dict[int, Tensor]) -> None:
    """Makes `out` the elements of `tensor` at the places that `indices`, by dimension, name.

    The indexed dimensions are brought to the front in memory; what is behind them moves in rows.
    """
    dims = sorted(indices)
    adjacent = dims[-1] - dims[0] + 1 == len(dims)
    start = dims[0] if adjacent else 0
    rank = out.rank - tensor.rank + len(dims)
    common = tuple(out.sizes[start:start + rank])
    rest = [d for d in cx.order_of(tensor) if d not in indices]
    source = cx.read(tensor, (*dims, *rest))
    strides = source.strides()
    if len(dims) == 1:
        index = indices[dims[0]]
        places, count = cx.read(index, row_major(index.rank)), tensor.sizes[dims[0]]
    else:
        # In rows, or where there are none in elements.
        unit = strides[dims[-1]] if rest else 1
        count = strides[dims[0]] // unit * tensor.sizes[dims[0]]
        places = _places(cx, [indices[d] for d in dims], [tensor.sizes[d] for d in dims],
                         [strides[d] // unit for d in dims], common)
    if not rest:
        _gather_into(cx, source, places, out, count, 1, _nowhere(places))
        return
    # Where each of the dimensions that are left is in the result.
    where = {d: k + rank * (k >= start) for k, d in enumerate(sorted(rest))}
    order = (*range(start, start + rank), *(where[d] for d in rest))
    _rows(cx, source, places, out, order, count)


def _places(cx, indices: Sequence[Tensor], sizes: Sequence[int], strides: Sequence[int],
            common: tuple[int, ...]) -> Operand:
    """One place for every combination of indices, row-major: index times stride, summed."""
    order = row_major(len(common))
    result, count, stride = cx.read_lifted(indices[0], order), sizes[0], strides[0]
    for index, size, own in zip(indices[1:], sizes[1:], strides[1:]):
        inputs = Broadcast(order, [result, cx.read_lifted(index, order)], common)
        params = inputs.params(cx)
        total = cx.temporary(common, "int32")
        cx.dispatch("index_sum", [*total.grid, total.packed, *params, count, stride, size, own],
                    [total], inputs.operands, total.texels)
        # From here on as it is.
        result, count, stride = total, 0, 1
    return result


def _rows(cx, source: Operand, places: Operand, out: Tensor, order: tuple[int, ...], rows: int,
          shader: str = "index_rows") -> None:
    """Adds the dispatch that makes each row of `out` (in `order`) the row that `places` names."""
    result = cx.write(out, order)
    slab = source.texels // rows if rows else 0
    cx.dispatch(shader, [*result.grid, slab, rows, places.packed, *places.grid, *source.grid],
                [result], [source, places], result.texels)


def _nowhere(places: Operand) -> Walk:
    """The walk over places that name elements by themselves."""
    return Walk(places.sizes, (0,) * len(places.sizes))


def _gather_into(cx, source: Operand, places: Operand, out: Tensor, count: int, stride: int,
                 walk: Walk) -> None:
    """Adds the dispatch that makes each element of `out` the one `places` names, see gather.comp.

    Args:
        count, stride: of the dimension that the places are in.
        walk: the strides of the others, in the order of `places`.
    """
    walk = walk.collapsed()
    if len(walk.sizes) > MAX_DIMS:
        raise UnsupportedError(f"{cx.where()}: {len(walk.sizes)} dimensions; at most {MAX_DIMS}")
    dims = [number for dim in zip(reversed(walk.sizes), reversed(walk.strides)) for number in dim]
    dims += [1, 0] * (MAX_DIMS - len(walk.sizes))
    result = cx.write(out, places.order)
    cx.dispatch("gather", [*result.grid, result.packed, *source.grid, count, stride,
                           len(walk.sizes), *dims],
                [result], [source, places], result.texels, loops=4)


@op("aten.gather.default")
def _gather(cx, node: Node) -> None:
    """Args x, dim, index (of the result's sizes)."""
    tensor, index, out = tensor_argument(node, 0), tensor_argument(node, 2), node.outs[0]
    places = cx.read(index, row_major(index.rank))
    source = cx.read(tensor)
    if tensor.rank == 0 or index.rank == 0:
        # A 0-d tensor counts as a 1-d one with one element.
        _gather_into(cx, source, places, out, tensor.numel, 1, _nowhere(places))
        return
    dim = dimension(node.args[1], tensor.rank)
    strides = source.strides()
    walk = Walk(tuple(index.sizes), tuple(0 if d == dim else strides[d]
                                          for d in range(tensor.rank)))
    _gather_into(cx, source, places, out, tensor.sizes[dim], strides[dim], walk)
