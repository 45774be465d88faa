"""Attention with a cache of keys and values.

The cache is [1, rows, heads, D], row-major, a buffer in every storage, of floats or in 8 bits
(`vkrt.ops.caches`): only the new rows are written, in place. Attention goes over the rows that are
there (shaders/common/attention.glsl), in blocks of queries, so that scores take about `SCORE_BYTES`
at any length of the context.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from vkrt.ops import tiles
from vkrt.ops.attention_row import attend_rows
from vkrt.ops.caches import cache_variant, change_cache, read_cache
from vkrt.ops.dtypes import ONE_FLOAT
from vkrt.ops.joining import fill
from vkrt.ops.operator import LateRule
from vkrt.ops.positions import need_position, position, write_rows
from vkrt.ops.registry import op
from vkrt.ops.rotary import turn_into, turned_sizes
from vkrt.ops.sizes import fail, need_rank, need_sizes, unsupported
from vkrt.ops.teams import team_for
from vkrt.work.tensor import Operand, Tensor, round_up, row_major
from vkrt.work.tuning import LANES

# Bytes of the scores of a block of queries, unless a single query needs more.
SCORE_BYTES = 1 << 20

# Rows of a tile where each invocation loads all that it needs; one is better for fewer than three.
SMALL_TILE = 4


def _need_cache(cache, rows, name):
    """Refuses a cache that does not take rows [1, S, heads, D]."""
    need_rank(rows, 4, "value" if name == "cache" else name.removesuffix("_cache"))
    need_rank(cache, 4, name)
    if cache[0] != 1 or rows[0] != 1:
        unsupported(name, f"a batch of {cache[0]}; vkrt takes 1")
    need_sizes((*cache[:1], *cache[2:]), (*rows[:1], *rows[2:]), name)
    if cache[3] % 4:
        unsupported(name, f"{cache[3]} elements a head; vkrt takes multiples of 4")
    if rows[1] > cache[1]:
        fail(name, f"expected at least {rows[1]} rows, got {cache[1]}")


def _attention_sizes(query, keys, values, start, mask, scale):
    need_rank(query, 4, "query")
    _need_cache(keys, query[:2] + keys[2:], "key_cache")
    need_sizes(values, keys, "value_cache")
    if query[0] != 1 or query[3] != keys[3] or not keys[2] or query[2] % keys[2]:
        fail("query", f"expected sizes [1, S, a multiple of {keys[2]}, {keys[3]}] for a cache "
             f"{list(keys)}, got {list(query)}")
    need_position(start, keys[1] - query[1], "start_pos")
    if mask is not None:
        unsupported("attn_mask", "a mask; vkrt takes attention that is causal or sees everything")
    if scale is not None and not math.isfinite(scale):
        unsupported("scale", f"{scale}")
    return (query,)


def _cached_sizes(query, key, value, key_cache, value_cache, start, _length, mask, dropout, _causal,
                  scale):
    need_sizes(key, value, "key")
    _need_cache(key_cache, key, "key_cache")
    if query[1:2] != key[1:2]:
        fail("query", f"expected {key[1]} rows, got sizes {list(query)}")
    _need_no_dropout(dropout)
    return (*_attention_sizes(query, key_cache, value_cache, start, mask, scale), key_cache,
            value_cache)


def _custom_sizes(query, keys, values, start, mask, dropout, _causal, scale):
    _need_no_dropout(dropout)
    return _attention_sizes(query, keys, values, start, mask, scale)


def _need_no_dropout(dropout):
    if dropout:
        unsupported("dropout_p", f"{dropout}; vkrt takes 0")


def _update_sizes(value, cache, start):
    _need_cache(cache, value, "cache")
    need_position(start, cache[1] - value[1], "start_pos")
    # What the operator returns only stands in the program: it is not defined what it holds.
    return (1,), cache


def _rows_left(rows: Tensor, cache: Tensor) -> int:
    return cache.sizes[1] - rows.sizes[1]


@op("sdpa_with_kv_cache.default", "query:T key:T value:T key_cache:T! value_cache:T! start_pos:i "
    "seq_len:i attn_mask:T? dropout_p:f is_causal:b scale:f?", sizes=_cached_sizes,
    dtypes=ONE_FLOAT, kernels="llama::sdpa_with_kv_cache.out",
    late=LateRule(("start_pos",), lambda query, _k, _v, cache, *_others: _rows_left(query, cache)))
def _sdpa_with_kv_cache(cx, node, query, key, value, key_cache, value_cache, start, _length, _mask,
                        _dropout, causal, scale):
    out, *changed = node.outs
    keys, values = (change_cache(cx, before, after) for before, after in
                    zip((key_cache, value_cache), changed, strict=True))
    write_rows(cx, (keys, values), (key, value), start)
    _attend(cx, out, query, keys, values, start, causal, scale)


def _rotary_sizes(query, key, *others):
    *cached, cosines, sines, how, first_row = others
    return _cached_sizes(*turned_sizes(query, key, cosines, sines, how, first_row), *cached)


@op("vkrt.rotary_sdpa_with_kv_cache.default", "query:T key:T value:T key_cache:T! value_cache:T! "
    "start_pos:i seq_len:i attn_mask:T? dropout_p:f is_causal:b scale:f? freqs_cos:T freqs_sin:T "
    "how:s first_row:i", sizes=_rotary_sizes, dtypes=ONE_FLOAT)
def _rotary_sdpa_with_kv_cache(cx, node, query, key, value, key_cache, value_cache, start, _length,
                               _mask, _dropout, causal, scale, cosines, sines, how, first_row):
    """The same of queries and keys that are turned before (`vkrt.passes.fuse_rotary`)."""
    out, *changed = node.outs
    keys, values = (change_cache(cx, before, after) for before, after in
                    zip((key_cache, value_cache), changed, strict=True))
    turned = Tensor(query.sizes, query.dtype)
    turn_into(cx, turned, query, key, (cosines, sines), how, first_row, (keys, values), value,
              start)
    _attend(cx, out, turned, keys, values, start, causal, scale)


@op("update_cache.default", "value:T cache:T! start_pos:i", sizes=_update_sizes, dtypes=ONE_FLOAT,
    kernels="llama::update_cache.out",
    late=LateRule(("start_pos",), lambda value, cache, _start: _rows_left(value, cache)))
def _update_cache(cx, node, value, cache, start):
    stands_for, changed = node.outs
    write_rows(cx, (change_cache(cx, cache, changed),), (value,), start)
    if cx.used(stands_for):
        fill(cx, stands_for, 0)


@op("llama.custom_sdpa.default", "query:T key:T value:T start_pos:i attn_mask:T? dropout_p:f "
    "is_causal:b scale:f?", sizes=_custom_sizes, dtypes=ONE_FLOAT, kernels="llama::custom_sdpa.out",
    late=LateRule(("start_pos",), lambda query, cache, *_others: _rows_left(query, cache)))
def _custom_sdpa(cx, node, query, keys, values, start, _mask, _dropout, causal, scale):
    _attend(cx, node.outs[0], query, read_cache(cx, keys), read_cache(cx, values), start, causal,
            scale)


def _attend(cx, out: Tensor, query: Tensor, keys: Operand, values: Operand, start: int,
            causal: bool, scale: float | None) -> None:
    """Dispatches attention of queries [1, S, H, D] over the rows of a cache up to their own."""
    _, queries, heads, size = query.sizes
    rows, kv_heads = keys.sizes[1:3]
    group = heads // kv_heads
    result = cx.write(out)
    if not result.texels:
        return
    source = cx.read(query, row_major(4))
    keys, values = cx.seen_flat(keys), cx.seen_flat(values)
    width = -(-rows // 4)
    block = max(1, min(queries, SCORE_BYTES // (16 * width * heads)))
    where, numbers = position(cx, start)
    variant = cache_variant(keys.dtype, out.dtype)
    factor = 1 / math.sqrt(size) if scale is None else float(scale)
    if attend_rows(cx, [group, kv_heads, size // 4, width, 0, queries, queries, rows, causal,
                        *numbers], factor, result, [source, keys, values, where], variant,
                   groups=queries * heads, keys=rows, texels=size // 4):
        return
    scores = cx.buffer((block, heads, 4 * width), "float32")
    kernels = (("attention_scores", [source, keys, where]),
               ("attention_values", [scores, values, where]))
    for first in range(0, queries, block):
        count = min(block, queries - first)
        params = [group, kv_heads, size // 4, width, first, count, queries, rows, causal, *numbers]
        tile, lanes, feature = _tile(cx, kernels, variant, count * group)
        each = kv_heads * -(-count * group // tile)
        cx.dispatch("attention_scores", [*params, factor, tile],
                    [scores], [source, keys, where], each * round_up(width, lanes),
                    dtype=variant, loops=size // 4, work=4 * tile, feature=feature)
        storage = "buffer" if cx.storage == "texture3d" else None
        team = team_for(cx.target, count * heads, width)
        if team is None:
            cx.dispatch("attention_softmax", params, [scores], [scores, where], count * heads,
                        storage=storage, loops=3 * width)
        else:
            cx.share("attention_softmax_team", [*params, *team.params], [scores], [scores, where],
                     team.groups(count * heads), storage=storage, features=team.features,
                     loops=4 * team.loops(width))
        cx.dispatch("attention_values", [*params, tile], [result], [scores, values, where],
                    each * round_up(size // 4, lanes), dtype=variant, loops=width,
                    work=4 * tile, feature=feature)


def _tile(cx, kernels: Sequence[tuple[str, list[Operand]]], dtype: str,
          rows: int) -> tuple[int, int, str]:
    """How many of so many rows an invocation of the kernels does, how many lanes load them for
    each other, and the feature that this takes (shaders/common/attention_tile.glsl)."""
    if rows > SMALL_TILE and tiles.hands_round(cx.target):
        found = [cx.compiled(shader, reads, dtype, ("shuffle",)) for shader, reads in kernels]
        if all(one is not None and one[1] for one in found):
            return LANES, LANES, "shuffle"
    return SMALL_TILE if rows >= 3 else 1, 1, ""
