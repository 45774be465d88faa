"""Attention without a cache, as models call it themselves: two products, a softmax between them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from vkrt.graph.graph import Node
from vkrt.ops.attention_blocks import Attention, attend_in_blocks
from vkrt.ops.attributes import PERMUTATION
from vkrt.ops.dtypes import ONE_FLOAT
from vkrt.ops.elementwise import binary
from vkrt.ops.matmul import multiply, place_turned
from vkrt.ops.matmul_strided import first_factor, has_lines, rows_in, second_factor
from vkrt.ops.registry import op
from vkrt.ops.rows import Places, RowRule, Window
from vkrt.ops.score_blocks import blocks_for
from vkrt.ops.sizes import fail, need_broadcast, need_rank, need_sizes, unsupported
from vkrt.ops.softmax import GUARDED, PLAIN, softmax
from vkrt.ops.strided import Strided
from vkrt.ops.strided_copy import joined
from vkrt.work.tensor import NOWHERE, Operand, Tensor, column_major, row_major


def _sizes(query, key, value, mask, scale):
    for sizes, name in ((query, "q"), (key, "k"), (value, "v")):
        need_rank(sizes, 4, name)
    need_sizes(key[:2] + key[3:], query[:2] + query[3:], "k")
    if value[:3] != key[:3]:
        fail("v", f"expected sizes {[*key[:3], 'any']}, got {list(value)}")
    if not key[2]:
        unsupported("k", "no rows to attend to")
    if not query[3] and scale is None:
        unsupported("q", "heads of no elements without a scale")
    if mask is not None:
        need_broadcast(mask, (*query[:3], key[2]), "attn_mask")
    if scale is not None and not math.isfinite(scale):
        unsupported("scale", f"{scale}")
    return ((*query[:3], value[3]),)


def _multiply_adds(query: Tensor, key: Tensor, value: Tensor, *_others) -> int:
    return query.numel * key.sizes[2] + math.prod(query.sizes[:3]) * key.sizes[2] * value.sizes[3]


def _windows(node: Node, dim: int) -> Places | None:
    """Rows of the result need the same rows of the queries, and of a mask that has as many."""
    query, _, _, *others = node.args
    if dim != query.rank - 2:
        return None
    mask = others[0] if others else None
    places = [(query, Window(dim))]
    if mask is not None and mask.rank > 1 and mask.sizes[-2] > 1:
        places.append((mask, Window(mask.rank - 2)))
    return places


@op("et_vk.sdpa.default", "q:T k:T v:T attn_mask:T? scale:f?", sizes=_sizes, dtypes=ONE_FLOAT,
    multiply_adds=_multiply_adds, rows=RowRule(_windows))
def _sdpa(cx, node, query, key, value, mask, scale):
    """softmax(q k^T scale + mask) v, for q [B, H, S, D], k [B, H, L, D], v [B, H, L, E]; the mask
    is added, broadcast to [B, H, S, L]."""
    scale = 1 / math.sqrt(query.sizes[3]) if scale is None else float(scale)
    _Inputs(query, key, value, mask, query.sizes[:2], scale, PLAIN).attend(cx, node.outs[0])


def _product_sizes(query, key, value, mask, _scale, heads, _guarded):
    for sizes, name in ((query, "q"), (key, "k"), (value, "v")):
        need_rank(sizes, 3, name)
    need_sizes(key[:2], (query[0], query[2]), "k")
    need_sizes(value[:2], (key[0], key[2]), "v")
    if math.prod(heads) != query[0]:
        fail("heads", f"expected the sizes of {query[0]} heads, got {list(heads)}")
    if mask is not None:
        need_broadcast(mask, (*heads, query[1], key[2]), "attn_mask")
    return ((*query[:2], value[2]),)


@op("vkrt.attention.default", "q:T k:T v:T attn_mask:T? scale:f heads:[i] guarded:b",
    sizes=_product_sizes, dtypes=ONE_FLOAT, rows=RowRule(_windows),
    multiply_adds=lambda query, key, value, *_others: (query.numel + query.sizes[0]
                                                       * query.sizes[1] * value.sizes[2])
    * key.sizes[2])
def _attention(cx, node, query, key, value, mask, scale, heads, guarded):
    """softmax(q k scale + mask) v, for the q [N, S, D], k [N, D, L] and v [N, L, E] of two products
    (`vkrt.passes.fuse_attention`). The mask is added, broadcast to [*heads, S, L]. With `guarded`
    the softmax of a row of nothing but -inf is zeros."""
    _Inputs(query, key, value, mask, heads, scale, GUARDED if guarded else PLAIN,
            is_turned=True).attend(cx, node.outs[0])


@dataclass(frozen=True)
class _Inputs:
    """The inputs of attention.

    Attributes:
        key: [.., L, D], or [.., D, L] with `is_turned`.
        heads: the sizes of the scores but for the last two.
    """

    query: Tensor
    key: Tensor
    value: Tensor
    mask: Tensor | None
    heads: tuple[int, ...]
    scale: float
    kind: int
    is_turned: bool = False

    @property
    def scores(self) -> tuple[int, ...]:
        return (*self.heads, self.query.sizes[-2], self.key.sizes[-1 if self.is_turned else -2])

    def attend(self, cx, out: Tensor) -> None:
        """Dispatches attention, whole or in blocks."""
        permutation = cx.attribute(PERMUTATION)
        views = () if permutation is None else permutation.views
        *heads, rows, keys = self.scores
        width = self.value.sizes[-1]
        blocks = None if not out.numel or not self.query.numel else blocks_for(
            cx.target, out.dtype, (math.prod(heads), rows, keys), width)
        if blocks is None:
            self._attend_whole(cx, out, views)
            return
        sizes = math.prod(heads), rows, width
        result = Strided.of(Operand(NOWHERE, sizes, out.dtype, row_major(3)))
        if views:
            dims = rows_in(sizes, views)
            assert dims is not None  # `fuse_permutation` has checked this
            result = replace(result, dims=dims)
        what = self._strided(cx, result)
        over: tuple[Operand, ...] = ()
        if (what.query.dims, what.query.base) == (result.dims, 0):
            # A block has read its rows of the queries before it writes them.
            over = (what.query.source.with_view(out.sizes, row_major(out.rank)),)
        others = what.keys, what.values, *([] if what.mask is None else [what.mask])
        attend_in_blocks(cx, what, cx.write(out, over=over, read_elsewhere=tuple(
            other.source for other in others)), blocks)

    def _strided(self, cx, result: Strided) -> Attention:
        count = math.prod(self.heads)
        query, values = first_factor(cx, self.query), second_factor(cx, self.value)
        if self.is_turned:
            matrix = second_factor(cx, self.key)
            lines = has_lines(matrix), has_lines(values)
        else:
            matrix = first_factor(cx, self.key).permuted(column_major(self.key.rank))
            lines = True, has_lines(values)
        mask = None if self.mask is None else _repeated(cx, self.mask, self.scores)
        return Attention(_heads(query, count), _heads(matrix, count), _heads(values, count), result,
                         mask and _heads(mask, count), lines, self.scale, self.kind)

    def _attend_whole(self, cx, out: Tensor, views: Sequence[Node]) -> None:
        *heads, rows, _ = self.scores
        count = math.prod(heads)
        sizes = (*self.query.sizes[:-1], self.value.sizes[-1])
        result = cx.temporary(sizes, out.dtype) if views else cx.write(out)
        if out.numel:
            scores, weights = (Tensor(self.scores, out.dtype, name=name)
                               for name in ("scores", "weights"))
            along, across = row_major(self.key.rank), column_major(self.key.rank)
            multiply(cx, _flat(cx.write(scores), count), _flat(cx.read(self.query, along), count),
                     _flat(cx.read(self.key, across if self.is_turned else along), count),
                     rows=rows, batches=count, alpha=self.scale)
            if self.mask is not None:
                masked = Tensor(self.scores, out.dtype, name="masked scores")
                binary(cx, masked, "ADD", scores, self.mask)
                scores = masked
            softmax(cx, weights, scores, len(heads) + 1, self.kind)
            multiply(cx, _flat(result, count), _flat(cx.read(weights, row_major(weights.rank)),
                                                     count),
                     _flat(cx.read(self.value, across), count), rows=rows, batches=count)
        if views:
            place_turned(cx, out, result, views)


def _flat(operand: Operand, count: int) -> Operand:
    """The same bytes as `count` matrices."""
    return operand.with_view((count, *operand.physical[-2:]), row_major(3))


def _heads(where: Strided, count: int) -> Strided:
    """The same elements with all heads in one dimension."""
    found = where.reshaped((count, *where.sizes[-2:]))
    assert found is not None  # as dimensions are only joined
    return found


def _repeated(cx, mask: Tensor, sizes: Sequence[int]) -> Strided:
    """A mask broadcast to the sizes of scores: repeated dimensions have stride 0."""
    source = cx.read_lifted(mask, row_major(len(sizes)))
    return Strided(source, tuple(joined([(size, 0 if own == 1 else stride)])
                                 for size, (own, stride) in zip(sizes, source.dims(), strict=True)))
