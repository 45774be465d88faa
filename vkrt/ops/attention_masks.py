"""Masks of attention over a cache: how kernels read them, and attention in parts where no view of
the device has a whole mask.

A stage may have no more than 4 storage buffers, and attention reads or writes as many beside its
mask. So the mask is read through a texel view in every storage.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from vkrt.ops.broadcast import convert, is_float
from vkrt.shader import opcode
from vkrt.work.target import Target
from vkrt.work.tensor import Operand, Tensor, row_major

# The fewest bytes that a texel of floats has
TEXEL = 8


@dataclass(frozen=True)
class Mask:
    """A mask of scores.

    Attributes:
        operand: float32 in a buffer.
        sizes: [batch, heads, S, rows of the cache]; the first three may be 1.
        kind: an opcode of shaders/attention/attention.glsl.
    """

    operand: Operand
    sizes: tuple[int, ...]
    kind: int

    @property
    def width(self) -> int:
        """Texels of a line, the keys of a query of a head."""
        return -(-self.sizes[3] // 4)

    @property
    def strides(self) -> list[int]:
        """The strides of the first three dimensions in texels, 0 of those of size 1."""
        return [math.prod(self.sizes[dim + 1:3]) * self.width if self.sizes[dim] > 1 else 0
                for dim in range(3)]

    def part(self, item: int, first: int, count: int) -> Mask:
        """That of some queries of an item."""
        items, heads, lines, keys = self.sizes
        if lines == 1:
            first, count = 0, 1
        line = (item * heads * lines if items > 1 else 0) + first
        seen = (heads - 1) * lines + count
        operand = slab(self.operand.with_view((items * heads * lines, keys), row_major(2)), line,
                       seen)
        return Mask(operand, (1, heads, lines, keys), self.kind)


def mask_of(cx, mask: Tensor | None) -> Mask | None:
    """The mask that a node has."""
    if mask is None:
        return None
    return Mask(cx.seen_flat(_as_floats(cx, mask)), (1,) * (4 - mask.rank) + mask.sizes,
                opcode("attention_tile", "ADDED" if is_float(mask.dtype) else "CHOOSES"))


def _as_floats(cx, mask: Tensor) -> Operand:
    """A mask as float32 in a buffer, once for all nodes that read it; True is 1."""
    if mask.dtype == "float32":
        return cx.flat(mask)
    if cx.is_constant(mask) and is_float(mask.dtype):
        return cx.flat(cx.constant_as(mask, dtype="float32"))

    def make() -> Operand:
        floats = Tensor(mask.sizes, "float32", name=mask.name)
        cx.place(floats, convert(cx, cx.read(mask, row_major(mask.rank)), "float32"))
        return cx.flat(floats)

    return cx.derived((mask, "float32"), make)


def slab(operand: Operand, first: int, count: int) -> Operand:
    """Some indices of the first dimension of a row-major operand in a buffer."""
    each = operand.nbytes // operand.sizes[0]
    return replace(operand, sizes=(count, *operand.sizes[1:]), offset=operand.offset + first * each)


def ranges_in_views(target: Target, mask: Mask, queries: int) -> list[tuple[int, int]]:
    """(first query, how many) of ranges whose part of a mask fits a texel view, and which begin
    where operands in buffers can; none where a view has no range."""
    _, heads, lines, _ = mask.sizes
    seen = target.max_texels // mask.width
    if lines > 1:
        seen -= (heads - 1) * lines
        most = queries if seen >= queries else seen - seen % -(-target.offset_alignment // TEXEL)
    else:
        most = queries if seen >= heads else 0
    starts = range(0, queries, most) if most > 0 else []
    return [(first, min(most, queries - first)) for first in starts]
