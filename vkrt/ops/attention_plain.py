"""Attention without a cache, as models call it themselves: two products, a softmax between them."""

from __future__ import annotations

import math

from vkrt.ops.dtypes import ONE_FLOAT
from vkrt.ops.elementwise import binary
from vkrt.ops.matmul import multiply
from vkrt.ops.registry import op
from vkrt.ops.sizes import fail, need_broadcast, need_rank, need_sizes, unsupported
from vkrt.ops.softmax import softmax
from vkrt.work.tensor import Operand, Tensor, row_major

# Of [B, H, rows, elements]: as they are, and with the elements of a row apart
ROWS, COLUMNS = row_major(4), (0, 1, 3, 2)


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


@op("et_vk.sdpa.default", "q:T k:T v:T attn_mask:T? scale:f?", sizes=_sizes, dtypes=ONE_FLOAT,
    multiply_adds=_multiply_adds)
def _sdpa(cx, node, query, key, value, mask, scale):
    """softmax(q k^T scale + mask) v, for q [B, H, S, D], k [B, H, L, D], v [B, H, L, E]; the mask
    is added, broadcast to [B, H, S, L]."""
    out = node.outs[0]
    result = cx.write(out)
    if not out.numel:
        return
    batches, rows = math.prod(query.sizes[:2]), query.sizes[2]
    scale = 1 / math.sqrt(query.sizes[3]) if scale is None else float(scale)
    sizes = (*query.sizes[:3], key.sizes[2])
    scores = Tensor(sizes, out.dtype, name="scores")
    multiply(cx, _batches(cx.write(scores)), _batches(cx.read(query, ROWS)),
             _batches(cx.read(key, ROWS)), rows=rows, batches=batches, alpha=scale)
    if mask is not None:
        masked = Tensor(sizes, out.dtype, name="masked scores")
        binary(cx, masked, "ADD", scores, mask)
        scores = masked
    weights = Tensor(sizes, out.dtype, name="weights")
    softmax(cx, weights, scores, 3)
    turned = cx.read(value, COLUMNS)
    multiply(cx, _batches(result), _batches(cx.read(weights, ROWS)),
             turned.with_view((batches, *value.sizes[2:]), (0, 2, 1)), rows=rows, batches=batches)


def _batches(operand: Operand) -> Operand:
    """[B, H, rows, elements] as [B * H, rows, elements]."""
    first, second, *others = operand.sizes
    return operand.with_view((first * second, *others), row_major(3))
