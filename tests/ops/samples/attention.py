"""Samples of attention with a cache: shared keys, positions, blocks of queries, large scores."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from harness import RunTime, Sample, normal

# Queries, heads, heads of the cache, elements a head, rows of the cache, position
SIZES = [(1, 4, 4, 8, 12, 0), (1, 6, 2, 16, 21, 20), (5, 3, 1, 12, 9, 4), (3, 2, 2, 4, 3, 0),
         (7, 9, 3, 64, 33, 11), (1, 1, 1, 4, 1, 0)]


def attention(query, keys, values, start, mask, dropout, causal, scale):
    """Attention of queries [1, S, H, D] over rows [1, M, G, D], as its operator says."""
    _, count, heads, size = query.shape
    scale = 1 / math.sqrt(size) if scale is None else scale
    keys, values = (np.repeat(a, heads // a.shape[2], 2) for a in (keys, values))
    seen = np.arange(keys.shape[1])[None] <= start + (
        np.arange(count) if causal else np.full(count, count - 1))[:, None]
    scores = np.where(seen[None], scale * np.einsum("shd,lhd->hsl", query[0], keys[0]), -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    return np.einsum("hsl,lhd->shd", np.where(seen[None], weights, 0), values[0])[None]


def updated(cache, rows, start):
    result = cache.copy()
    result[:, start:start + rows.shape[1]] = rows
    return result


def cached(query, key, value, keys, values, start, _length, *others):
    keys, values = updated(keys, key, start), updated(values, value, start)
    return [attention(query, keys, values, start, *others), keys, values]


def _arrays(sizes, scale=1.0):
    count, heads, kv_heads, size, rows, start = sizes
    query = normal(1, count, heads, size) * np.float32(scale)
    new = [normal(1, count, kv_heads, size, seed=seed) for seed in (1, 2)]
    caches = [normal(1, rows, kv_heads, size, seed=seed) for seed in (3, 4)]
    return query, new, caches, start


def _cached(sizes, causal=True, scale=None, factor=1.0, constants=(), name="",
            late=False) -> Sample:
    query, new, caches, start = _arrays(sizes, factor)
    start = RunTime(start, base=-2) if late else start
    return Sample("sdpa_with_kv_cache.default",
                  [query, *new, *caches, start, 1, None, 0, causal, scale], cached,
                  constants=constants, rtol=2e-6,
                  name=name or f"{'x'.join(map(str, sizes))}-{causal}-{scale}")


def _custom(sizes, causal=True, constants=()) -> Sample:
    query, _, caches, start = _arrays(sizes)
    return Sample("llama.custom_sdpa.default", [query, *caches, start, None, 0.0, causal, None],
                  attention, constants=constants, rtol=2e-6,
                  name=f"{'x'.join(map(str, sizes))}-{causal}-{constants}")


def plain(query, keys, values, mask=None, scale=None):
    """softmax(q k^T scale + mask) v."""
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    scores = query @ keys.swapaxes(2, 3) * np.float32(scale)
    if mask is not None:
        scores = scores + mask
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ values


def _plain(sizes, mask=None, scale=None, constants=(), name="") -> Sample:
    """Sizes: batch, heads, queries, keys, elements of a head and of a value; of the mask."""
    batch, heads, queries, keys, size, wide = sizes
    arrays = [normal(batch, heads, count, width, seed=seed) for seed, (count, width) in
              enumerate(((queries, size), (keys, size), (keys, wide)))]
    if mask is not None:
        mask = np.where(normal(*mask, seed=3) > 0.5, np.float32(-1e4), normal(*mask, seed=4))
    return Sample("et_vk.sdpa.default", [*arrays, mask, scale], plain, constants=constants,
                  rtol=2e-6, name=f"{'x'.join(map(str, sizes))}-{name}"
                  f"{'' if mask is None else mask.shape}-{scale}")


def _update(sizes, late=False) -> Sample:
    _, (rows, _), (cache, _), start = _arrays(sizes)
    return Sample("update_cache.default", [rows, cache, RunTime(start, 1) if late else start],
                  lambda rows, cache, start: [np.zeros(1), updated(cache, rows, start)],
                  name=f"{'x'.join(map(str, sizes))}{'-late' * late}")


def _slice(sizes, dim, start, count) -> Sample:
    """A slice that begins where an input says."""
    return Sample("aten.slice_copy.Tensor",
                  [normal(*sizes), dim, RunTime(start), RunTime(start + count), 1],
                  lambda x, dim, start, end, step: x[(slice(None),) * dim + (slice(start, end),)],
                  rtol=0, name=f"{'x'.join(map(str, sizes))}-{dim}-{start}-late")


SAMPLES = [
    *map(_cached, SIZES),
    *(_cached(sizes, late=True, name=f"{'x'.join(map(str, sizes))}-late") for sizes in SIZES),
    *(_update(sizes, late) for sizes in SIZES[:3] for late in (False, True)),
    _slice((10, 6), 0, 3, 4),
    _slice((3, 9, 2, 5), 1, 0, 9),
    _slice((3, 9, 2, 5), 1, 8, 1),
    _cached((4, 2, 1, 8, 10, 3), causal=False),
    _cached((2, 2, 1, 8, 10, 3), scale=0.5),
    # One key outweighs all others. The rounding of scores in the thousands is in the exponents.
    replace(_cached((3, 4, 2, 8, 16, 9), factor=200.0, name="large"), rtol=1e-5),
    _cached((2, 4, 2, 8, 16, 9), constants=(3, 4), name="constants"),
    # More scores than fit into one block
    _cached((70, 4, 2, 4, 4096, 4026), name="blocks"),
    _plain((1, 3, 5, 7, 8, 8)), _plain((2, 2, 1, 6, 5, 3)), _plain((1, 1, 1, 1, 1, 1)),
    _plain((2, 3, 17, 9, 12, 10), mask=(17, 9)), _plain((2, 3, 4, 9, 8, 8), mask=(2, 1, 1, 9)),
    _plain((1, 2, 6, 40, 64, 64), mask=(1, 2, 6, 40), scale=0.3),
    _plain((1, 2, 3, 5, 4, 4), scale=0.0), _plain((2, 2, 3, 5, 6, 6), constants=(1, 2), name="c"),
    _plain((1, 2, 0, 5, 4, 4)),
    *(_custom(sizes, causal, constants) for sizes in SIZES[1:3] for causal in (True, False)
      for constants in ((), (1, 2))),
]
