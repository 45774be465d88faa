"""Operators that make tensors from less: concatenation, padding, constants, equal steps."""

from __future__ import annotations

import math
from itertools import accumulate

from vkrt.errors import UnsupportedError
from vkrt.graph.graph import Node
from vkrt.ops.arguments import argument, dimension, ints, limited, slice_end, tensor_argument
from vkrt.ops.broadcast import (
    convert,
    convert_into,
    expansion,
    is_float,
    lifted_order,
    result_order,
)
from vkrt.ops.copying import Walk, emit
from vkrt.ops.registry import op
from vkrt.pte.coerce import as_float, as_int
from vkrt.work.tensor import Operand, Tensor, row_major

# Inputs of join.comp, those of its variant for storage buffers, and outer dimensions of pad.comp.
JOINED, JOINED_BUFFERS, PADDED_DIMS = 4, 3, 4

# A beginning beyond every element: an input that is not there.
NOWHERE = 1 << 30


@op("aten.cat.default")
def _cat(cx, node):
    out = node.outs[0]
    tensors = [t for t in node.args[0] if t.numel > 0]
    dim = dimension(argument(node, 1, 0), out.rank)
    order = result_order(cx, tensors, out.sizes)
    starts = [0, *accumulate(tensor.sizes[dim] for tensor in tensors)]
    packed = order[-1] == dim
    if packed and any(start % 4 for start in starts[:-1]):
        _join(cx, tensors, out, order, starts)
        return
    result = cx.write(out, order)
    inside = order[order.index(dim) + 1:]
    # Texels of one index of the dimension (of 4 of the packed one).
    inner = 1 if packed else math.prod(out.sizes[d] for d in inside[:-1]) * result.grid[2]
    unit = 4 if packed else 1
    total = -(-out.sizes[dim] // unit)
    for tensor, start in zip(tensors, starts):
        source = cx.operand(tensor)
        if source.dtype != out.dtype:
            source = convert(cx, cx.read(tensor), out.dtype)
        strides = source.strides()
        walk = Walk(tuple(tensor.sizes[d] for d in order), tuple(strides[d] for d in order))
        size = -(-tensor.sizes[dim] // unit)
        emit(cx, result, source, walk, run=size * inner, gap=(total - size) * inner,
             offset=start // unit * inner)


def _join(cx, tensors: list[Tensor], out: Tensor, order: tuple[int, ...],
          starts: list[int]) -> None:
    """Concatenation along the packed dimension where texels are shared, few inputs at a time."""
    operands = [convert(cx, cx.read(tensor, order), out.dtype) for tensor in tensors]
    _join_into(cx, cx.write(out, order), operands, starts[:-1])


def _join_into(cx, result: Operand, operands: list[Operand], starts: list[int]) -> None:
    """Joins operands that begin at these elements of the packed dimension."""
    operands, starts = list(operands), list(starts)
    columns, rows, texels = result.grid
    done = 0
    while done < texels:
        first = max(i for i, start in enumerate(starts) if start <= 4 * done)
        storage = cx.variant(operands[first:first + JOINED])
        most = JOINED_BUFFERS if storage == "buffer" else JOINED
        last = min(first + most, len(operands))
        # Whole texels of what these inputs hold.
        end = texels if last == len(operands) else starts[last] // 4
        if end == done:
            # A texel that has elements of more inputs than are bound at once: two become one.
            operands[first:first + 2] = [_joined_pair(cx, operands[first:first + 2],
                                                      result.order[-1])]
            del starts[first + 1]
            continue
        some = operands[first:last]
        unused = JOINED - len(some)
        cx.dispatch("join", [*result.grid, result.packed, done, end - done, *starts[first:last],
                             *[NOWHERE] * unused, *(o.grid[2] for o in some), *[1] * unused,
                             len(some)],
                    [result], [*some, *some[:1] * (most - len(some))],
                    columns * rows * (end - done), loops=4, storage=storage)
        done = end


def _joined_pair(cx, pair: list[Operand], dim: int) -> Operand:
    widths = [operand.sizes[dim] for operand in pair]
    sizes = [sum(widths) if d == dim else size for d, size in enumerate(pair[0].sizes)]
    result = cx.temporary(sizes, pair[0].dtype, pair[0].order)
    _join_into(cx, result, pair, [0, widths[0]])
    return result


@op("aten.constant_pad_nd.default")
def _constant_pad_nd(cx, node):
    tensor, out = tensor_argument(node, 0), node.outs[0]
    pads = ints(node.args[1])
    before = [0] * tensor.rank
    for place, amount in enumerate(pads[::2]):
        before[tensor.rank - 1 - place] = amount
    source = convert(cx, cx.read(tensor), out.dtype)
    if source.sizes == out.sizes and not any(pads):
        cx.alias(out, source, source.order)
        return
    if tensor.rank == 0:
        raise UnsupportedError(f"{cx.where()}: padding of a 0-d tensor")
    number = _number(argument(node, 2, 0), out.dtype)
    order = source.order
    changed = [d for d in order[:-1] if before[d] or source.sizes[d] != out.sizes[d]]
    while len(changed) >= PADDED_DIMS:
        # Too many for one dispatch: some of them first.
        some, changed = changed[1 - PADDED_DIMS:], changed[:1 - PADDED_DIMS]
        sizes = [out.sizes[d] if d in some else size for d, size in enumerate(source.sizes)]
        partial = cx.temporary(sizes, out.dtype, order)
        _pad(cx, source, partial, [before[d] if d in some else 0 for d in range(tensor.rank)],
             number)
        source, before = partial, [0 if d in some else n for d, n in enumerate(before)]
    _pad(cx, source, cx.write(out, order), before, number)


def _pad(cx, source: Operand, result: Operand, before: list[int], number: int | float) -> None:
    """Adds the dispatch that puts a border of `number` around `source`."""
    dims: list[tuple[int, int, int]] = []
    for d in source.order[:-1]:
        size, inside = result.sizes[d], source.sizes[d]
        if dims and before[d] == 0 and size == inside:
            outer, front, own = dims.pop()
            dims.append((outer * size, front * size, own * size))
        else:
            dims.append((size, before[d], inside))
    dims = [*reversed(dims), *[(1, 0, 1)] * (PADDED_DIMS - len(dims))]
    packed = source.order[-1]
    cx.dispatch("pad", [*result.grid, result.packed, before[packed], source.sizes[packed],
                        *source.grid, number, *(n for dim in dims for n in dim)],
                [result], [source], result.texels, loops=4)


@op("aten.slice_scatter.default")
def _slice_scatter(cx, node):
    """Args x, src, dim, start, end, step: x with a slice of it replaced by src."""
    tensor, part, out = tensor_argument(node, 0), tensor_argument(node, 1), node.outs[0]
    dim = dimension(argument(node, 2, 0), tensor.rank)
    size = tensor.sizes[dim]
    start = slice_end(argument(node, 3), size, 0)
    source = cx.read(tensor)
    order = source.order
    if not part.numel:
        cx.alias(out, source, order)
        return
    patch = convert(cx, cx.read(part, order), out.dtype)
    result = cx.write(out, order, over=(source,))
    packed = order[-1] == dim
    inner = 1 if packed else math.prod(
        out.sizes[d] for d in order[order.index(dim) + 1:-1]) * result.grid[2]
    cx.dispatch("slice_scatter", [*result.grid, size, packed, inner, start,
                                  as_int(argument(node, 5, 1)), part.sizes[dim], *patch.grid],
                [result], [source, patch], result.texels, loops=4)


@op("aten.copy.default")
def _copy(cx, node):
    """Args x, src: src repeated to the sizes of x."""
    source, out = cx.read(tensor_argument(node, 1)), node.outs[0]
    order = lifted_order(source.order, out.rank)
    missing = out.rank - len(source.sizes)
    lifted = source.with_view((1,) * missing + tuple(source.sizes), order)
    if lifted.dtype != out.dtype:
        lifted = convert(cx, lifted, out.dtype)
    emit(cx, cx.write(out, order), lifted, expansion(lifted, out.sizes, order))


def _number(value, dtype: str) -> int | float:
    """A number as a parameter of a kernel for this dtype."""
    number = as_float(int(value) if isinstance(value, bool) else value)
    if is_float(dtype):
        return number
    return int(number != 0) if dtype == "bool" else limited(number)


def _fill(cx, node: Node, value) -> None:
    out = node.outs[0]
    result: Operand = cx.write(out, row_major(out.rank))
    cx.dispatch("fill", [*result.grid, result.packed, _number(value, out.dtype)], [result], [],
                result.texels)


@op("aten.full.default", "aten.full_like.default")
def _full(cx, node):
    _fill(cx, node, node.args[1])


@op("aten.scalar_tensor.default")
def _scalar_tensor(cx, node):
    _fill(cx, node, node.args[0])


@op("aten.zeros.default", "aten.zeros_like.default")
def _zeros(cx, node):
    _fill(cx, node, 0)


@op("aten.ones.default", "aten.ones_like.default")
def _ones(cx, node):
    _fill(cx, node, 1)


@op("aten.arange.start_step")
def _arange(cx, node):
    """Args start, end, step; integers where the result has them, as torch, from whole numbers."""
    out = node.outs[0]
    start, step = as_float(node.args[0]), as_float(node.args[2])
    dtype = out.dtype if is_float(out.dtype) else "int32"
    numbers = [start, step] if is_float(dtype) else [int(start), int(step)]
    direct = out.dtype == dtype
    result = cx.write(out) if direct else cx.temporary(out.sizes, dtype)
    cx.dispatch("arange", [*result.grid, result.packed, *numbers], [result], [], result.texels)
    if not direct:
        convert_into(cx, cx.write(out), result)
