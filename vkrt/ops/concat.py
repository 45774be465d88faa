"""Operators that make tensors from smaller ones or from numbers: concat, constants, equal steps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate

from vkrt.graph.graph import Node
from vkrt.ops.broadcast import (
    convert,
    expansion,
    fill,
    is_float,
    result_in,
    result_order,
)
from vkrt.ops.dtypes import ANY, FIRST, ONE, PROMOTED
from vkrt.ops.parts import select_sizes, slice_sizes, sliced
from vkrt.ops.registry import op
from vkrt.ops.rows import Places, RowRule, Window
from vkrt.ops.sizes import at_least, fail, need_broadcast, need_sizes, same, wrap
from vkrt.ops.strided_copy import copy_strided
from vkrt.ops.views import viewed
from vkrt.pte.coerce import as_float
from vkrt.work.tensor import Operand, Tensor

# Inputs of join.comp, and those of its variant for storage buffers.
JOINED, JOINED_BUFFERS = 4, 3

# The operator that joins the strips of a tensor (`vkrt.passes.strips`)
JOIN_STRIPS = "vkrt.join_strips.default"

# The start of an input that is not there: beyond every element.
NOWHERE = 1 << 30


def cat_sizes(tensors, dim):
    if not tensors:
        fail("tensors", "expected at least one")
    # To torch a 1-d tensor without elements fits tensors of any rank.
    shapes = [sizes for sizes in tensors if sizes != (0,)]
    if not shapes:
        return ((0,),)
    first = shapes[0]
    if not first:
        fail("tensors", "0-d tensors cannot be joined")
    dim = wrap(dim, len(first))
    for sizes in shapes:
        if len(sizes) != len(first) or any(
                a != b for d, (a, b) in enumerate(zip(sizes, first, strict=True)) if d != dim):
            fail("tensors", f"sizes differ in other dimensions than {dim}: {list(first)} and "
                 f"{list(sizes)}")
    return ((*first[:dim], sum(sizes[dim] for sizes in shapes), *first[dim + 1:]),)


def _cat_windows(node: Node, dim: int) -> Places | None:
    tensors, along = node.args
    if dim == along % node.outs[0].rank:
        return None
    return [(tensor, Window(dim)) for tensor in tensors if tensor.numel]


@op("aten.cat.default", "tensors:[T] dim:i", sizes=cat_sizes, dtypes=PROMOTED,
    rows=RowRule(_cat_windows))
def _cat(cx, node, tensors, dim):
    concatenate(cx, node.outs[0], tensors, dim)


def stack_sizes(tensors, dim):
    if not tensors:
        fail("tensors", "expected at least one")
    for sizes in tensors:
        need_sizes(sizes, tensors[0], "tensors")
    dim = wrap(dim or 0, len(tensors[0]) + 1)
    return ((*tensors[0][:dim], len(tensors), *tensors[0][dim:]),)


@op("aten.stack.default", "tensors:[T] dim:i?", sizes=stack_sizes, dtypes=PROMOTED)
def _stack(cx, node, tensors, dim):
    out = node.outs[0]
    dim = wrap(dim or 0, out.rank)
    sizes = (*out.sizes[:dim], 1, *out.sizes[dim + 1:])
    concatenate(cx, out, [viewed(cx, tensor, sizes) for tensor in tensors], dim)


def starts_along(tensors: Sequence[Tensor], dim: int) -> list[int]:
    """The index at which each of tensors begins that are joined along a dimension."""
    return [0, *accumulate(tensor.sizes[dim] for tensor in tensors)][:-1]


def concatenate(cx, out: Tensor, tensors: Sequence[Tensor], dim: int) -> None:
    """Makes `out` the tensors, one behind the other along a dimension."""
    tensors = [t for t in tensors if t.numel > 0]
    dim = wrap(dim, out.rank)
    order = result_order(cx, tensors, out.sizes)
    starts = starts_along(tensors, dim)
    packed = order[-1] == dim
    if packed and any(start % 4 for start in starts):
        _join(cx, tensors, out, order, starts)
        return
    result = cx.write(out, order)
    for tensor, start in zip(tensors, starts):
        put(cx, result, convert(cx, cx.operand(tensor, out.dtype), out.dtype), dim, start)


def put(cx, result: Operand, source: Operand, dim: int, start: int) -> None:
    """Copies `source` into `result`, to the indices from `start` on of a dimension. Index `start`
    begins a texel (AssertionError)."""
    packed, total, inner = result.along(dim)
    if packed and start % 4:
        raise AssertionError(f"index {start} of dimension {dim} is within a texel of {result}")
    unit = 4 if packed else 1
    size = -(-source.sizes[dim] // unit)
    copy_strided(cx, result, source, source.dims(result.order), run=size * inner,
                 gap=(total - size) * inner, offset=start // unit * inner)


@op(JOIN_STRIPS, "tensors:[T] dim:i", sizes=cat_sizes, dtypes=ONE, rows=RowRule(_cat_windows))
def _join_strips(cx, node, tensors, dim):
    """The tensor of the strips: most were written to their places in it when they were made."""
    out, = node.outs
    if cx.joins.is_concatenated(out):
        concatenate(cx, out, tensors, dim)
    else:
        cx.place(out, cx.joins.operand(out))


def _join(cx, tensors: list[Tensor], out: Tensor, order: tuple[int, ...],
          starts: list[int]) -> None:
    """Concatenates along the packed dimension where inputs share texels, few inputs at a time."""
    operands = [convert(cx, cx.read(tensor, order), out.dtype) for tensor in tensors]
    _join_into(cx, cx.write(out, order), operands, starts)


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
        # Whole texels of these inputs.
        end = texels if last == len(operands) else starts[last] // 4
        if end == done:
            # A texel has elements of more inputs than are bound at once: two inputs become one.
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


def slice_scatter_sizes(x, source, dim, start, end, step):
    need_sizes(source, slice_sizes(x, dim, start, end, step)[0], "src")
    return (x,)


@op("aten.slice_scatter.default", "self:T src:T dim:i start:i? end:i? step:i?",
    sizes=slice_scatter_sizes, dtypes=FIRST, convert="one")
def _slice_scatter(cx, node, tensor, part, dim, start, _end, step):
    dim = wrap(dim, tensor.rank)
    start, _ = sliced(tensor.sizes[dim], start, None, 1)
    _replace_part(cx, node.outs[0], tensor, part, dim, start, 1 if step is None else step)


def select_scatter_sizes(x, source, dim, index):
    need_sizes(source, select_sizes(x, dim, index)[0], "src")
    return (x,)


@op("aten.select_scatter.default", "self:T src:T dim:i index:i", sizes=select_scatter_sizes,
    dtypes=FIRST, convert="one")
def _select_scatter(cx, node, tensor, part, dim, index):
    dim = wrap(dim, tensor.rank)
    sizes = (*tensor.sizes[:dim], 1, *tensor.sizes[dim + 1:])
    _replace_part(cx, node.outs[0], tensor, viewed(cx, part, sizes), dim,
                  index % tensor.sizes[dim], 1)


def _replace_part(cx, out: Tensor, tensor: Tensor, part: Tensor, dim: int, start: int,
                  step: int) -> None:
    """Makes `out` the tensor with `part` at indices start, start + step, .. of a dimension."""
    size = tensor.sizes[dim]
    source = cx.read(tensor)
    order = source.order
    if not part.numel:
        cx.alias(out, source, order)
        return
    patch = convert(cx, cx.read(part, order), out.dtype)
    result = cx.write(out, order, over=(source,), read_elsewhere=(patch,))
    packed, _, inner = result.along(dim)
    cx.dispatch("slice_scatter", [*result.grid, size, packed, inner, start,
                                  step, part.sizes[dim], *patch.grid],
                [result], [source, patch], result.texels, loops=4)


def copy_sizes(x, source):
    need_broadcast(source, x, "src")
    return (x,)


@op("aten.copy.default", "self:T src:T non_blocking:-", sizes=copy_sizes, dtypes=FIRST,
    kernels="aten::{}.out aten::copy_ aten::fill.Tensor_out", broadcasts="src")
def _copy(cx, node, _x, source):
    """The second tensor, repeated to the sizes of the first."""
    out = node.outs[0]
    lifted = cx.read(source).lifted(out.rank)
    if lifted.dtype != out.dtype:
        lifted = convert(cx, lifted, out.dtype)
    order = lifted.order
    copy_strided(cx, cx.write(out, order), lifted, expansion(lifted, out.sizes, order))


# Tensors of numbers


def filled_sizes(size, *_value):
    return (tuple(at_least(number, 0, "size") for number in size),)


@op("aten.full.default", "size:[i] fill_value:n *:*", sizes=filled_sizes, dtypes=ANY)
@op("aten.full_like.default", "self:T fill_value:n *:*", sizes=same, dtypes=ANY,
    kernels="aten::{}.out aten::fill.Scalar_out")
@op("aten.scalar_tensor.default", "s:n *:*", sizes=lambda _value: ((),), dtypes=ANY)
def _full(cx, node, *args):
    fill(cx, node.outs[0], args[-1])


# aten.empty is filled with zeros, too: its contents are undefined.
@op("aten.zeros.default", "size:[i] *:*", sizes=filled_sizes, dtypes=ANY,
    adapted=dict.fromkeys(("dim_order_ops::_empty_dim_order.out", "aten::empty.out",
                           "aten::empty_permuted.out", "aten::empty_strided.out"),
                          lambda args: args[:1]))
@op("aten.ones.default", "size:[i] *:*", sizes=filled_sizes, dtypes=ANY)
@op("aten.zeros_like.default aten.ones_like.default", "self:T *:*", sizes=same, dtypes=ANY)
def _zeros_or_ones(cx, node, _like):
    fill(cx, node.outs[0], int(node.op.startswith("aten.ones")))


def arange_sizes(start, end, step):
    for name, value in (("start", start), ("end", end), ("step", step)):
        if not math.isfinite(value):
            fail(name, f"expected a finite number, got {value}")
    if not step:
        fail("step", "expected a number other than 0")
    count = (end - start) / step
    if count < 0 or math.isinf(count):
        fail("step", f"does not lead from {start} to {end}: {step}")
    return ((math.ceil(count),),)


@op("aten.arange.start_step", "start:n end:n step:n *:*", sizes=arange_sizes, dtypes=ANY,
    kernels="aten::arange.start_out", adapted={"aten::arange.out": lambda args: (0, *args[:1], 1)})
def _arange(cx, node, start, _end, step):
    """For a result of integers, start and step are truncated first, as in torch."""
    out = node.outs[0]
    start, step = as_float(start), as_float(step)
    dtype = out.dtype if is_float(out.dtype) else "int32"
    numbers = [start, step] if is_float(dtype) else [int(start), int(step)]
    with result_in(cx, dtype, out) as result:
        cx.map_texels("arange", result, [], numbers)
