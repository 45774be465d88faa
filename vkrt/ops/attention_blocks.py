"""Attention in blocks of its scores.

The scores of long inputs are many times as large as the queries, keys and values, and each row of
scores is needed for one row of the result only. So heads are done in groups, and where the scores
of one head are still too many, its rows in blocks. The scores of a block are computed, masked, put
through the softmax and multiplied with the values before the next block; all use one buffer.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from vkrt.ops.matmul import multiply
from vkrt.ops.matmul_strided import placed
from vkrt.ops.score_blocks import Blocks
from vkrt.ops.softmax import softmax_into
from vkrt.ops.strided import Strided
from vkrt.work.tensor import Operand, round_up, row_major


@dataclass(frozen=True)
class Attention:
    """What attention reads and writes, each as [heads, rows, elements] in a buffer.

    Attributes:
        query, result: rows of elements.
        keys: [heads, elements, keys].
        values: [heads, keys, elements].
        mask: added to the scores, [heads, rows, keys]; or None.
        lines: whether the lines of the keys, and those of the values, lie along the summed
            dimension.
        scale: of the scores, before the mask.
        kind: of the softmax.
    """

    query: Strided
    keys: Strided
    values: Strided
    result: Strided
    mask: Strided | None
    lines: tuple[bool, bool]
    scale: float
    kind: int


def attend_in_blocks(cx, what: Attention, out: Operand, blocks: Blocks) -> None:
    """Dispatches attention block by block. `what.result` says how the result lies in `out`, which
    may be the memory of the queries."""
    heads, rows, _ = what.query.sizes
    keys = what.keys.sizes[2]
    parts = _blocks(what, blocks)
    scores = cx.temporary((max(count * size for _, count, _, size in parts), keys), out.dtype)
    for first, count, row, size in parts:
        block = scores.with_view((count, size, keys), row_major(3))
        if what.mask is not None:
            _cut(what.mask, first, count, row, size).copy_into(cx, block)
        whole = Strided.of(block)
        product = placed(_cut(what.query, first, count, row, size),
                         _cut(what.keys, first, count), whole, not what.lines[0])
        assert product is not None  # the heads of a group of `_groups` are regular
        multiply(cx, block, product.source, product.matrix, rows=size, batches=count,
                 residual=None if what.mask is None else block, alpha=what.scale, parts=product)
        softmax_into(cx, block, block, 2, what.kind)
        product = placed(whole, _cut(what.values, first, count),
                         _cut(what.result, first, count, row, size), not what.lines[1])
        assert product is not None
        multiply(cx, out, product.source, product.matrix, rows=size, batches=count, parts=product)


def _cut(where: Strided, head: int, heads: int, row: int = 0, rows: int | None = None) -> Strided:
    """Some heads, and some rows of them."""
    found = where.part(0, head, heads)
    if found is not None and rows is not None:
        found = found.part(1, row, rows)
    assert found is not None  # the heads of a group of `_groups` are regular, and so are rows
    return found


def _blocks(what: Attention, blocks: Blocks) -> list[tuple[int, int, int, int]]:
    """The first head, how many heads, the first row and how many rows of each block."""
    heads, rows, _ = what.query.sizes
    return [(head, count, row, size)
            for head, count in _groups(what, heads, blocks.heads)
            for row, size in _ranges(rows, blocks.rows)]


def _groups(what: Attention, count: int, most: int) -> list[tuple[int, int]]:
    """(first head, number of heads) of groups of up to `most` of `count` heads. The heads of a
    group lie at regular distances in every tensor."""
    found = [where.dims[0] for where in (what.query, what.keys, what.values, what.result, what.mask)
             if where is not None and len(where.dims[0]) > 1]
    inner = math.gcd(count, *(factors[-1][0] for factors in found))
    # Two indices say where a head is, if the inner one has the same size in every tensor.
    run = count if most >= inner and all(
        len(factors) == 2 and factors[1][0] == inner for factors in found) else inner
    size = min(run, most - most % inner if most >= inner else most)
    size = round_up(-(-run // -(-run // size)), inner if most >= inner else 1)
    return [(start + first, min(size, run - first))
            for start in range(0, count, run) for first in range(0, run, size)]


def _ranges(count: int, most: int) -> list[tuple[int, int]]:
    """(first row, number of rows) of ranges of `most` of `count` rows. The last range has one more
    if only one row would be left: a single row has other kernels."""
    starts = list(range(0, count, most))
    if count % most == 1 and len(starts) > 1:
        starts.pop()
    return [(start, end - start) for start, end in zip(starts, [*starts[1:], count])]
