"""Attention of any number of queries over a cache, in tiles of rows that hold no score longer than
a chunk of keys takes (shaders/attention/attention_tile.glsl): one dispatch, without scratch memory.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from vkrt.ops import tiles
from vkrt.ops.attention_masks import Mask, ranges_in_views, slab
from vkrt.work.target import GROUP, SMALL_GROUP, Target
from vkrt.work.tensor import Operand, row_major
from vkrt.work.tuning import LANES

# Limits of the shader: rows and texels of results in the registers of an invocation of a workgroup,
# texels of a chunk's scores
MOST_ROWS, MOST_COLUMNS, SCORES = 4, 4, 256
# Registers that 4 rows take: with 64 a Mali-G610 spills 36, and none with one row
ROWS_REGISTERS = 96


@dataclass(frozen=True)
class Attention:
    """What attention reads and writes.

    Attributes:
        query, result: [batch, S, heads, D], row-major; a buffer or an image.
        keys, values: caches [batch, rows, heads, D].
        position: that of the first query, which is read from this operand as the two numbers say
            (`vkrt.ops.positions.position`).
        causal: whether a query sees the keys up to its own, or up to that of the last one.
        scale: of the scores.
        mask: with which queries see all keys.
        variant: of the kernels: the dtypes of the caches and of the result.
    """

    query: Operand
    keys: Operand
    values: Operand
    result: Operand
    position: tuple[Operand, list[int]]
    causal: bool
    scale: float
    mask: Mask | None
    variant: str

    @property
    def group(self) -> int:
        """Heads of the queries that share a head of the cache."""
        return self.query.sizes[2] // self.keys.sizes[2]

    @property
    def operands(self) -> list[Operand]:
        """What is read and written, without the position."""
        return [self.query, self.result, self.keys, self.values,
                *([self.mask.operand] if self.mask else [])]

    @property
    def params(self) -> list:
        """The parameters of attention.glsl."""
        batch, queries, _, size = self.query.sizes
        rows, heads = self.keys.sizes[1:3]
        return [self.group, heads, self.query.grid[2], queries, rows, self.causal,
                *self.position[1], batch - 1, self.mask.kind if self.mask else 0, self.scale,
                size]


@dataclass(frozen=True)
class Shape:
    """How tiles are done.

    Attributes:
        members: invocations that do a tile: a workgroup, or lanes that hand round what they load.
        span: how many of them have the same rows.
        rows, columns: of an invocation's results, in rows and texels.
    """

    members: int
    span: int
    rows: int
    columns: int

    def count(self, rows: int, texels: int) -> int:
        """How many tiles there are of results of so many rows and texels."""
        return -(-rows // (self.members // self.span * self.rows)) * -(-texels // self.width)

    @property
    def width(self) -> int:
        """Texels of a tile's results."""
        return self.span * self.columns

    def loops_of_lanes(self, keys: int, texels: int) -> int:
        """Iterations of all loops of a lane over so many keys, of heads of so many texels."""
        chunks = -(-keys // (4 * LANES))
        return chunks * (texels + LANES + 1) + self.rows * (self.columns + 1)

    def loops(self, keys: int, texels: int) -> int:
        """The same of a member of a workgroup."""
        chunk = SCORES // (self.members // self.span * self.rows)
        turns = -(-chunk // self.span)
        each = turns * (texels + 2) + self.span + chunk // max(self.span // texels, 1) + 1
        return -(-keys // (4 * chunk)) * each + self.span + self.rows * (self.columns + self.span)


def shape_for_lanes(rows: int, texels: int) -> Shape:
    """How lanes that hand round what they load do tiles of `rows` rows of queries, of heads of so
    many texels."""
    return Shape(LANES, LANES, min(rows, LANES), min(-(-texels // LANES), MOST_COLUMNS))


def shape_for(target: Target, rows: int, texels: int) -> Shape:
    """How workgroups do them: on GPUs with a texel of the results for each member, on CPUs, which
    do one member of a workgroup behind the other, few members with several texels."""
    members, columns = GROUP, 1
    if target.tuning.lanes <= GROUP:
        members = SMALL_GROUP
        columns = min(-(-texels // members), MOST_COLUMNS)
    each = min(MOST_ROWS if target.tuning.registers >= ROWS_REGISTERS else 1, rows)
    span = 1
    while span < members and (span * columns < texels
                              or members // (2 * span) * each >= max(rows, 1)):
        span *= 2
    return Shape(members, span, each, columns)


def attend_tiles(cx, what: Attention) -> None:
    """Dispatches attention: once, or for some queries at a time where the device's texel views are
    smaller than the mask.

    Raises:
        UnsupportedError: they are smaller than what some queries need of the mask.
    """
    if what.mask is None or what.mask.operand.texels <= cx.target.max_texels:
        _attend(cx, what)
        return
    batch, queries, _, _ = what.query.sizes
    parts = [_part(what, item, first, count) for item in range(batch)
             for first, count in ranges_in_views(cx.target, what.mask, queries)]
    alignment = cx.target.offset_alignment
    if not parts or any(operand.offset % alignment for part in parts for operand in part.operands):
        cx.check_view(what.mask.operand)
    for part in parts:
        _attend(cx, part)


def _part(what: Attention, item: int, first: int, count: int) -> Attention:
    """Some queries of an item, which see all keys because there is a mask."""
    assert what.mask is not None
    query, result = (slab(slab(whole, item, 1).with_view(whole.sizes[1:], row_major(3)), first,
                          count).with_view((1, count, *whole.sizes[2:]), row_major(4))
                     for whole in (what.query, what.result))
    return replace(what, query=query, result=result, keys=slab(what.keys, item, 1),
                   values=slab(what.values, item, 1), mask=what.mask.part(item, first, count))


def _attend(cx, what: Attention) -> None:
    batch, queries, _, _ = what.query.sizes
    keys, heads = what.keys.sizes[1:3]
    rows, texels = queries * what.group, what.query.grid[2]
    mask, strides = cx.vector(None, "float32"), [0, 0, 0]
    if what.mask is not None:
        mask, strides = what.mask.operand, what.mask.strides
    reads = [what.query, what.keys, what.values, what.position[0], mask]
    params = [*what.params, *strides]
    if tiles.hands_round(cx.target) and cx.compiled("attention_tile", reads, what.variant,
                                                    ("shuffle",)):
        shape = shape_for_lanes(rows, texels)
        cx.dispatch("attention_tile", [*params, shape.rows, shape.columns], [what.result], reads,
                    LANES * batch * heads * shape.count(rows, texels), dtype=what.variant,
                    loops=shape.loops_of_lanes(keys, texels), work=4 * shape.rows,
                    feature="shuffle")
        return
    shape = shape_for(cx.target, rows, texels)
    cx.share("attention_tile", [*params, shape.rows, shape.columns, shape.span], [what.result],
             reads, batch * heads * shape.count(rows, texels), size=shape.members,
             dtype=what.variant, loops=shape.loops(keys, texels))
