"""Tensors with a border: of a number, or of their own elements mirrored, repeated or rolled in."""

from __future__ import annotations

from collections.abc import Sequence

from vkrt.ops.broadcast import convert, number_of
from vkrt.ops.dtypes import FIRST, ONE
from vkrt.ops.registry import op
from vkrt.ops.sizes import fail, need_rank, wrap, wrap_all
from vkrt.ops.views import reshape, viewed
from vkrt.shader import opcode
from vkrt.work.tensor import Operand, Tensor

# Outer dimensions of pad.comp
PADDED_DIMS = 4

# Opcodes of pad.comp for borders of a tensor's own elements
MIRRORED = {"reflection": "REFLECT", "replication": "REPLICATE"}


def constant_pad_sizes(x, pad, _value):
    if len(pad) % 2 or len(pad) > 2 * len(x):
        fail("pad", f"expected up to {len(x)} pairs, got {list(pad)}")
    result = list(x)
    for place in range(len(pad) // 2):
        # Pairs begin with the last dimension.
        ends = pad[2 * place:2 * place + 2]
        if result[-1 - place] + sum(min(end, 0) for end in ends) < 0:
            fail("pad", f"{list(pad)} takes more away than {list(x)} has")
        result[-1 - place] += sum(ends)
    return (tuple(result),)


@op("aten.constant_pad_nd.default", "self:T pad:[i] value:n", sizes=constant_pad_sizes,
    dtypes=FIRST, convert="one")
def _constant_pad_nd(cx, node, tensor, pads, value):
    out = node.outs[0]
    pad(cx, out, tensor, _before(pads, tensor.rank), number_of(value, out.dtype))


def _before(pads: Sequence[int], rank: int) -> list[int]:
    """Elements put in front of every dimension, from pairs that begin with the last dimension."""
    before = [0] * rank
    for place, amount in enumerate(pads[::2]):
        before[rank - 1 - place] = amount
    return before


def pad(cx, out: Tensor, tensor: Tensor, before: Sequence[int], number: int | float = 0,
        border: str = "") -> None:
    """Makes `out` the tensor with a border.

    Args:
        before: elements put in front of every dimension; the sizes say what is put behind.
        number: the elements of the border, unless `border` says otherwise.
        border: an opcode of pad.comp; empty for a border of `number`.
    """
    source = convert(cx, cx.read(tensor), out.dtype)
    if source.sizes == out.sizes and not any(before):
        cx.alias(out, source, source.order)
        return
    order, before = source.order, list(before)
    changed = [d for d in order[:-1] if before[d] or source.sizes[d] != out.sizes[d]]
    while len(changed) >= PADDED_DIMS:
        # Too many for one dispatch: some of them first.
        some, changed = changed[1 - PADDED_DIMS:], changed[:1 - PADDED_DIMS]
        sizes = [out.sizes[d] if d in some else size for d, size in enumerate(source.sizes)]
        partial = cx.temporary(sizes, out.dtype, order)
        _pad(cx, source, partial, [before[d] if d in some else 0 for d in range(tensor.rank)],
             number, border)
        source, before = partial, [0 if d in some else n for d, n in enumerate(before)]
    _pad(cx, source, cx.write(out, order), before, number, border)


def _pad(cx, source: Operand, result: Operand, before: Sequence[int], number: int | float,
         border: str) -> None:
    dims: list[tuple[int, int, int]] = []
    # A mirrored dimension is not joined: whole rows would be mirrored, not their elements.
    joins = border in ("", "CIRCULAR")
    for d in source.order[:-1]:
        size, inside = result.sizes[d], source.sizes[d]
        unchanged = not dims or (dims[-1][1] == 0 and dims[-1][0] == dims[-1][2])
        if dims and before[d] == 0 and size == inside and (joins or unchanged):
            outer, front, own = dims.pop()
            dims.append((outer * size, front * size, own * size))
        else:
            dims.append((size, before[d], inside))
    dims = [dim for dim in reversed(dims) if dim != (1, 0, 1)]
    count = max(len(dims), 1)
    dims += [(1, 0, 1)] * (PADDED_DIMS - len(dims))
    packed = source.order[-1]
    cx.map_texels("pad", result, [source],
                  [before[packed], source.sizes[packed], *source.grid, number,
                   *(n for dim in dims for n in dim), opcode("pad", border) if border else 0,
                   count], loops=4)


# Borders of a tensor's own elements


def mirrored_sizes(x, pads, count, reflects):
    need_rank(x, (count + 1, count + 2), "self")
    if len(pads) != 2 * count:
        fail("padding", f"expected {2 * count} numbers, got {list(pads)}")
    sizes, = constant_pad_sizes(x, pads, 0)
    for d, size in enumerate(x[-count:], len(x) - count):
        ends = pads[2 * (len(x) - 1 - d):2 * (len(x) - d)]
        if not size or (reflects and max(ends) >= size):
            fail("padding", f"{list(ends)} for a dimension of {size} elements")
        if not sizes[d]:
            fail("padding", f"{list(ends)} leaves nothing of a dimension of {size} elements")
    return (sizes,)


def _declare(name: str, count: int) -> None:
    @op(f"aten.{name}_pad{count}d.default", "self:T padding:[i]",
        sizes=lambda x, pads: mirrored_sizes(x, pads, count, name == "reflection"), dtypes=ONE)
    def _mirrored_pad(cx, node, tensor, pads):
        pad(cx, node.outs[0], tensor, _before(pads, tensor.rank), border=MIRRORED[name])


for _name in MIRRORED:
    for _count in (1, 2, 3):
        _declare(_name, _count)


def roll_sizes(x, shifts, dims):
    wrap_all(dims or (), len(x))
    if len(shifts) != (len(dims) if dims else 1):
        fail("shifts", f"expected as many as dimensions, got {list(shifts)}")
    return (x,)


@op("aten.roll.default", "self:T shifts:[i] dims:[i]?", sizes=roll_sizes, dtypes=FIRST,
    convert="one")
def _roll(cx, node, tensor, shifts, dims):
    """Elements moved along dimensions, from behind the end to the front again; without dimensions,
    the elements of the flattened tensor."""
    out = node.outs[0]
    if not tensor.numel or not tensor.rank:
        reshape(cx, tensor, out)
        return
    if not dims:
        rolled = Tensor((tensor.numel,), tensor.dtype)
        pad(cx, rolled, viewed(cx, tensor, rolled.sizes), [shifts[0] % tensor.numel],
            border="CIRCULAR")
        reshape(cx, rolled, out)
        return
    before = [0] * tensor.rank
    for shift, dim in zip(shifts, dims, strict=True):
        d = wrap(dim, tensor.rank)
        before[d] = shift % tensor.sizes[d]
    pad(cx, out, tensor, before, border="CIRCULAR")
