"""Operators that read elements at places that another tensor names.

torch refuses an index outside of its dimension, and so does vkrt where indices are an input of the
program (`vkrt.ops.ids`). On the device nothing can be refused: a negative index counts from the
end, and one that is still outside becomes the first or the last place. Nothing is ever read outside
of a tensor.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from vkrt.errors import UnsupportedError
from vkrt.ops.broadcast import Broadcast
from vkrt.ops.dtypes import FIRST
from vkrt.ops.operator import Indices
from vkrt.ops.registry import op
from vkrt.ops.sizes import broadcast, fail, need_rank, wrap
from vkrt.ops.strided_copy import MAX_DIMS, StridedDim, joined
from vkrt.ops.views import reshape
from vkrt.work.constant_rows import rows_of, table_ranges
from vkrt.work.tensor import Operand, Tensor, row_major

# Texels of a row that an invocation may copy, and the fewest invocations that have to be left
RUNS, LEAST = (8, 4, 2), 256


def indices_along(x: Tensor, dim: int, index: Tensor, *_others: Any) -> Iterator[Indices]:
    """Indices along one dimension, of which a 0-d tensor has none."""
    if x.rank:
        yield Indices(index, x.sizes[wrap(dim, x.rank)])


def indices_by_dimension(x: Tensor, indices: Sequence[Tensor | None], *_others: Any
                         ) -> Iterator[Indices]:
    """Indices of one dimension after the other; None for a dimension that is not indexed."""
    for size, index in zip(x.sizes, indices):
        if index is not None:
            yield Indices(index, size, from_end=True)


def embedding_sizes(weight, indices, *_training):
    need_rank(weight, 2, "weight")
    return ((*indices, weight[1]),)


@op("aten.embedding.default", "weight:T indices:T.int32 padding_idx:i? scale_grad:b? sparse:b?",
    sizes=embedding_sizes, dtypes=FIRST, reads_rows=True,
    indices=lambda weight, indices, *_training: [Indices(indices, weight.sizes[0])])
def _embedding(cx, node, weight, indices, *_training):
    """Weight [V, E], indices [..]; the result is [.., E]. A constant weight stays as it lies in the
    file, in every storage: it may be mapped."""
    out = node.outs[0]
    if cx.read_rows(out, weight, indices):
        return
    places, order = cx.read(indices, row_major(indices.rank)), row_major(out.rank)
    if cx.is_constant(weight):
        _look_up(cx, weight, places, out, order)
    else:
        _rows(cx, [(0, cx.read(weight, (0, 1)))], places, out, order, weight.sizes[0])


def _look_up(cx, table: Tensor, places: Operand, out: Tensor, order: tuple[int, ...]) -> None:
    """Makes each row of `out` (in `order`) the row of a constant that `places` names. A table of
    more bytes than kernels see at once is looked up in ranges of its rows, one after the other."""
    table = cx.constant_as(table)
    sources = [(start, cx.flat(rows_of(table, start, end)))
               for start, end in table_ranges([table], cx.target.max_weight)]
    _rows(cx, sources, places, out, order, table.sizes[0], "embedding")


def index_select_sizes(x, dim, index):
    need_rank(index, (0, 1), "index")
    dim = wrap(dim, len(x))
    count = math.prod(index)
    if not x:
        if count != 1:
            fail("index", f"a 0-d tensor has one element, got {count} indices")
        return ((),)
    if count and not x[dim]:
        fail("index", f"dimension {dim} has no elements")
    return ((*x[:dim], count, *x[dim + 1:]),)


@op("aten.index_select.default", "self:T dim:i index:T.int32", sizes=index_select_sizes,
    dtypes=FIRST, indices=indices_along, reads_rows=True)
def _index_select(cx, node, x, dim, index):
    """An index of sizes [n], or 0-d."""
    if x.rank == 0:
        reshape(cx, x, node.outs[0])
    elif wrap(dim, x.rank) or not cx.read_rows(node.outs[0], x, index):
        _select(cx, x, node.outs[0], {wrap(dim, x.rank): index})


def indexed_sizes(x, indices):
    """Sizes of x[indices], for indices that are None or sizes of integer tensors."""
    if len(indices) > len(x):
        fail("indices", f"expected up to {len(x)}, got {len(indices)}")
    places = [d for d, sizes in enumerate(indices) if sizes is not None]
    if not places:
        return x
    common = broadcast(*(indices[d] for d in places))
    if math.prod(common) and not all(x[d] for d in places):
        fail("indices", f"an indexed dimension of {list(x)} has no elements")
    left = [n for d, n in enumerate(x) if d not in places]
    # The dimensions of indices stay in place if the indexed dimensions are neighbours, else they
    # move to the front.
    adjacent = places[-1] - places[0] + 1 == len(places)
    start = places[0] if adjacent else 0
    return (*left[:start], *common, *left[start:])


@op("aten.index.Tensor", "self:T indices:[T.int32?]",
    sizes=lambda x, indices: (indexed_sizes(x, indices),), dtypes=FIRST,
    indices=indices_by_dimension, reads_rows=True)
def _index(cx, node, x, indices):
    """Indices are broadcast to common sizes. These replace the indexed dimensions, or come first
    where the indexed dimensions are not neighbours."""
    by_dimension = {d: index for d, index in enumerate(indices) if index is not None}
    if not by_dimension:
        reshape(cx, x, node.outs[0])
    elif [*by_dimension] != [0] or not cx.read_rows(node.outs[0], x, by_dimension[0]):
        _select(cx, x, node.outs[0], by_dimension)


@dataclass(frozen=True)
class Indexed:
    """Where the elements that indices name are. The indexed dimensions are brought to the front in
    memory; the dimensions behind them make rows.

    Attributes:
        source: the tensor in that order.
        places: numbers of rows; of elements in memory where no dimension is behind the indexed
            ones.
        count: of rows or elements.
        has_rows: whether there are rows.
        order: of the result of indexing, where there are rows.
    """

    source: Operand
    places: Operand
    count: int
    has_rows: bool
    order: tuple[int, ...]


def indexing_of(cx, tensor: Tensor, sizes: Sequence[int], indices: dict[int, Tensor]) -> Indexed:
    """Where the elements are that `indices` (by dimension) name in `tensor`; `sizes` are those of
    the result, see `indexed_sizes`."""
    dims = sorted(indices)
    adjacent = dims[-1] - dims[0] + 1 == len(dims)
    start = dims[0] if adjacent else 0
    rank = len(sizes) - tensor.rank + len(dims)
    common = tuple(sizes[start:start + rank])
    rest = [d for d in cx.order_of(tensor) if d not in indices]
    source = cx.read(tensor, (*dims, *rest))
    strides = source.strides()
    if len(dims) == 1:
        index = indices[dims[0]]
        places, count = cx.read(index, row_major(index.rank)), tensor.sizes[dims[0]]
    else:
        # In rows, or in elements where there are no rows. Rows of no elements lie 0 apart.
        unit = (strides[dims[-1]] if rest else 1) or 1
        count = strides[dims[0]] // unit * tensor.sizes[dims[0]]
        places = _places(cx, [indices[d] for d in dims], [tensor.sizes[d] for d in dims],
                         [strides[d] // unit for d in dims], common)
    # The place in the result of each dimension that is left.
    where = {d: k + rank * (k >= start) for k, d in enumerate(sorted(rest))}
    order = (*range(start, start + rank), *(where[d] for d in rest))
    return Indexed(source, places, count, bool(rest), order)


def _select(cx, tensor: Tensor, out: Tensor, indices: dict[int, Tensor]) -> None:
    """Makes `out` the elements of `tensor` that `indices` (by dimension) name."""
    if [*indices] == [0] and tensor.rank > 1 and cx.is_constant(tensor):
        index = indices[0]
        _look_up(cx, tensor, cx.read(index, row_major(index.rank)), out, row_major(out.rank))
        return
    found = indexing_of(cx, tensor, out.sizes, indices)
    if found.has_rows:
        _rows(cx, [(0, found.source)], found.places, out, found.order, found.count)
    else:
        _gather_into(cx, found.source, found.places, out, found.count, 1)


def _places(cx, indices: Sequence[Tensor], sizes: Sequence[int], strides: Sequence[int],
            common: tuple[int, ...]) -> Operand:
    """One place for every combination of indices, row-major: index times stride, summed."""
    order = row_major(len(common))
    result, count, stride = cx.read_lifted(indices[0], order), sizes[0], strides[0]
    for index, size, own in zip(indices[1:], sizes[1:], strides[1:]):
        inputs = Broadcast(order, [result, cx.read_lifted(index, order)], common)
        params = inputs.params(cx)
        total = cx.temporary(common, "int32")
        cx.map_texels("index_sum", total, inputs.operands, [*params, count, stride, size, own])
        # The sum so far goes on as it is.
        result, count, stride = total, 0, 1
    return result


def _rows(cx, sources: Sequence[tuple[int, Operand]], places: Operand, out: Tensor,
          order: tuple[int, ...], rows: int, shader: str = "index_rows") -> None:
    """Adds a dispatch for each source, which makes the rows of `out` (in `order`) those that
    `places` name and the source has. Of `rows` rows, a source has those from its number on."""
    result = cx.write(out, order)
    slab = sum(source.texels for _, source in sources) // rows if rows else 0
    run = _run(cx, slab, result.texels)
    for first, source in sources:
        count = source.texels // slab if slab else rows
        cx.dispatch(shader, [*result.grid, slab, rows, places.packed, *places.grid, *source.grid,
                             run, first, count],
                    [result], [source, places], result.texels // run, loops=run)


def _run(cx, slab: int, texels: int) -> int:
    """How many texels of a row of `slab` an invocation copies. On CPU drivers an invocation costs
    as much as the copy of several texels; on GPUs neighbours copy texels that lie side by side."""
    if cx.target.tuning.shares:
        return 1
    return next((run for run in RUNS if slab % run == 0 and texels >= run * LEAST), 1)


def _gather_into(cx, source: Operand, places: Operand, out: Tensor, count: int, stride: int,
                 dims: Sequence[StridedDim] = ()) -> None:
    """Adds the dispatch that makes each element of `out` the one `places` names, see gather.comp.

    Args:
        count, stride: of the dimension that the places are in.
        dims: the other dimensions, in the order of `places`; none where the places are numbers of
            elements in memory.
    """
    dims = joined(dims or [(size, 0) for size in places.sizes]) or ((1, 1),)
    if len(dims) > MAX_DIMS:
        raise UnsupportedError(f"{cx.where()}: {len(dims)} dimensions; at most {MAX_DIMS}")
    padded = [*reversed(dims), *[(1, 0)] * (MAX_DIMS - len(dims))]
    result = cx.write(out, places.order)
    cx.map_texels("gather", result, [source, places],
                  [*source.grid, count, stride, len(dims), *chain.from_iterable(padded)], loops=4)


def gather_sizes(x, dim, index, _sparse):
    # 0-d tensors count as 1-d ones with one element.
    source, places = x or (1,), index or (1,)
    dim = wrap(dim, len(x))
    if math.prod(index):
        if len(source) != len(places):
            fail("index", f"expected rank {len(x)}, got sizes {list(index)}")
        for d, (count, size) in enumerate(zip(places, source, strict=True)):
            if (d != dim and count > size) or not size:
                fail("index", f"sizes {list(index)} reach past {list(x)}")
    return (index,)


@op("aten.gather.default", "self:T dim:i index:T.int32 sparse_grad:b?", sizes=gather_sizes,
    dtypes=FIRST, indices=indices_along)
def _gather(cx, node, tensor, dim, index, _sparse):
    gather(cx, node.outs[0], tensor, dim, index)


def gather(cx, out: Tensor, tensor: Tensor, dim: int, index: Tensor) -> None:
    """Fills `out` with the elements of `tensor` that `index` names along a dimension. `out` has the
    sizes of `index`."""
    places = cx.read(index, row_major(index.rank))
    source = cx.read(tensor)
    if tensor.rank == 0 or index.rank == 0:
        # A 0-d tensor counts as a 1-d one with one element.
        _gather_into(cx, source, places, out, tensor.numel, 1)
        return
    dim = wrap(dim, tensor.rank)
    strides = source.strides()
    dims = [(size, 0 if d == dim else strides[d]) for d, size in enumerate(index.sizes)]
    _gather_into(cx, source, places, out, tensor.sizes[dim], strides[dim], dims)
