"""Attention with a cache of keys and values.

The cache is [batch, rows, heads, D], row-major, of floats or in 8 bits (`vkrt.ops.caches`). It is a
buffer in every storage. Only the new rows are written, in place. Attention goes over the rows
filled so far, or with a mask over all rows (shaders/attention/attention.glsl), in one dispatch
that keeps no scores: of few queries on GPUs a workgroup for each (`vkrt.ops.attention_row`), else
in tiles (`vkrt.ops.attention_tile`).
"""

from __future__ import annotations

import math

from vkrt.ops.attention_masks import mask_of
from vkrt.ops.attention_row import attend_rows
from vkrt.ops.attention_tile import Attention, attend_tiles
from vkrt.ops.broadcast import fill
from vkrt.ops.caches import change_cache, read_cache
from vkrt.ops.dtypes import FLOATS_ALIKE, ONE_FLOAT, floats_and_mask
from vkrt.ops.operator import Indices, RuntimeScalarRule
from vkrt.ops.positions import need_position, position, write_rows, write_rows_at
from vkrt.ops.registry import op
from vkrt.ops.rotary import turn_into, turned_sizes
from vkrt.ops.sizes import fail, need_broadcast, need_rank, need_sizes, unsupported
from vkrt.ops.strided_copy import variant
from vkrt.work.tensor import Operand, Tensor, row_major

# The largest start position of an operator that ignores the position.
ANY_START = (1 << 31) - 1


def _need_cache(cache, rows, name):
    """Refuses a cache that does not take rows [batch, S, heads, D]."""
    need_rank(rows, 4, "value" if name == "cache" else name.removesuffix("_cache"))
    need_rank(cache, 4, name)
    need_sizes((*cache[:1], *cache[2:]), (*rows[:1], *rows[2:]), name)
    if rows[1] > cache[1]:
        fail(name, f"expected at least {rows[1]} rows, got {cache[1]}")


def _attention_sizes(query, keys, values, start, mask, causal, scale):
    need_rank(query, 4, "query")
    _need_cache(keys, query[:2] + keys[2:], "key_cache")
    need_sizes(values, keys, "value_cache")
    if query[0] != keys[0] or query[3] != keys[3] or not keys[2] or query[2] % keys[2]:
        fail("query", f"expected sizes [{keys[0]}, S, a multiple of {keys[2]}, {keys[3]}] for a "
             f"cache {list(keys)}, got {list(query)}")
    need_position(start, keys[1] - query[1], "start_pos")
    if mask is not None:
        if causal:
            unsupported("attn_mask", "a mask with is_causal=True; one of the two can be asked for")
        if mask[-1:] != keys[1:2]:
            fail("attn_mask", f"expected {keys[1]} columns, one for each row of the cache, got "
                 f"sizes {list(mask)}")
        need_broadcast(mask, (query[0], query[2], query[1], keys[1]), "attn_mask")
    if scale is not None and not math.isfinite(scale):
        unsupported("scale", f"{scale}")
    return (query,)


def _cached_sizes(query, key, value, key_cache, value_cache, start, _length, mask, dropout, causal,
                  scale):
    need_sizes(key, value, "key")
    _need_cache(key_cache, key, "key_cache")
    if query[1:2] != key[1:2]:
        fail("query", f"expected {key[1]} rows, got sizes {list(query)}")
    _need_no_dropout(dropout)
    return (*_attention_sizes(query, key_cache, value_cache, start, mask, causal, scale),
            key_cache, value_cache)


def _custom_sizes(query, keys, values, start, mask, dropout, causal, scale):
    _need_no_dropout(dropout)
    return _attention_sizes(query, keys, values, start, mask, causal, scale)


def _need_no_dropout(dropout):
    if dropout:
        unsupported("dropout_p", f"{dropout}; vkrt takes 0")


def _update_sizes(value, cache, start):
    _need_cache(cache, value, "cache")
    need_position(start, cache[1] - value[1], "start_pos")
    # The returned tensor is only a placeholder in the program: its contents are undefined.
    return (1,), cache


def _rows_left(rows: Tensor, cache: Tensor) -> int:
    return cache.sizes[1] - rows.sizes[1]


@op("sdpa_with_kv_cache.default", "query:T key:T value:T key_cache:T! value_cache:T! start_pos:i "
    "seq_len:i attn_mask:T? dropout_p:f is_causal:b scale:f?", sizes=_cached_sizes,
    dtypes=floats_and_mask(7), kernels="llama::sdpa_with_kv_cache.out",
    runtime_scalar=RuntimeScalarRule(
        ("start_pos",), lambda query, _k, _v, cache, *_others: _rows_left(query, cache)))
def _sdpa_with_kv_cache(cx, node, query, key, value, key_cache, value_cache, start, _length, mask,
                        _dropout, causal, scale):
    out, *changed = node.outs
    keys, values = (change_cache(cx, before, after) for before, after in
                    zip((key_cache, value_cache), changed, strict=True))
    write_rows(cx, (keys, values), (key, value), start)
    _attend(cx, out, query, keys, values, start, mask, causal, scale)


def _rotary_sizes(query, key, *others):
    *cached, cosines, sines, how, first_row = others
    return _cached_sizes(*turned_sizes(query, key, cosines, sines, how, first_row), *cached)


@op("vkrt.rotary_sdpa_with_kv_cache.default", "query:T key:T value:T key_cache:T! value_cache:T! "
    "start_pos:i seq_len:i attn_mask:T? dropout_p:f is_causal:b scale:f? freqs_cos:T freqs_sin:T "
    "how:s first_row:i", sizes=_rotary_sizes, dtypes=floats_and_mask(7))
def _rotary_sdpa_with_kv_cache(cx, node, query, key, value, key_cache, value_cache, start, _length,
                               mask, _dropout, causal, scale, cosines, sines, how, first_row):
    """As `_sdpa_with_kv_cache`, with queries and keys turned first (`vkrt.passes.fuse_rotary`)."""
    out, *changed = node.outs
    keys, values = (change_cache(cx, before, after) for before, after in
                    zip((key_cache, value_cache), changed, strict=True))
    turned = Tensor(query.sizes, query.dtype)
    turn_into(cx, turned, query, key, (cosines, sines), how, first_row, (keys, values), value,
              start)
    _attend(cx, out, turned, keys, values, start, mask, causal, scale)


@op("update_cache.default", "value:T cache:T! start_pos:i", sizes=_update_sizes, dtypes=ONE_FLOAT,
    kernels="llama::update_cache.out",
    runtime_scalar=RuntimeScalarRule(
        ("start_pos",), lambda value, cache, _start: _rows_left(value, cache)))
def _update_cache(cx, node, value, cache, start):
    stands_for, changed = node.outs
    write_rows(cx, (change_cache(cx, cache, changed),), (value,), start)
    if cx.used(stands_for):
        fill(cx, stands_for, 0)


def _places_sizes(value, cache, _start, places):
    _need_cache(cache, value, "cache")
    need_sizes(places, value[:2], "indices")
    return (1,), cache


@op("llama.update_cache_with_indices.default", "value:T cache:T! start_pos:i indices:T.int32",
    sizes=_places_sizes, dtypes=FLOATS_ALIKE,
    convert="own", runtime_scalar=RuntimeScalarRule(("start_pos",), lambda *_args: ANY_START),
    indices=lambda _value, cache, _start, places: [Indices(places, cache.sizes[1])])
def _update_cache_with_indices(cx, node, value, cache, _start, places):
    """Each row of each batch item goes to a row index of its own, as in a ring buffer."""
    stands_for, changed = node.outs
    write_rows_at(cx, change_cache(cx, cache, changed), value, places)
    if cx.used(stands_for):
        fill(cx, stands_for, 0)


@op("llama.custom_sdpa.default", "query:T key:T value:T start_pos:i attn_mask:T? dropout_p:f "
    "is_causal:b scale:f?", sizes=_custom_sizes, dtypes=floats_and_mask(4),
    runtime_scalar=RuntimeScalarRule(
        ("start_pos",), lambda query, cache, *_others: _rows_left(query, cache)))
def _custom_sdpa(cx, node, query, keys, values, start, mask, _dropout, causal, scale):
    _attend(cx, node.outs[0], query, read_cache(cx, keys), read_cache(cx, values), start, mask,
            causal, scale)


def _attend(cx, out: Tensor, query: Tensor, keys: Operand, values: Operand, start: int,
            mask: Tensor | None, causal: bool, scale: float | None) -> None:
    """Dispatches attention of queries [batch, S, H, D] over the rows of a cache up to their own, or
    over all rows if there is a mask."""
    result = cx.write(out)
    if not result.texels:
        return
    what = Attention(
        query=cx.read(query, row_major(4)), keys=cx.seen_flat(keys), values=cx.seen_flat(values),
        result=result, position=position(cx, start), causal=causal,
        scale=1 / math.sqrt(query.sizes[3]) if scale is None else float(scale),
        mask=mask_of(cx, mask), variant=variant(keys.dtype, out.dtype))
    if not attend_rows(cx, what):
        attend_tiles(cx, what)
