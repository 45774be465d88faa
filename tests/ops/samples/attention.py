"""Samples of attention with a cache: shared keys, positions, many queries, large scores,
batches, masks, heads of any size."""

import math
from dataclasses import replace

import numpy as np
from harness import RunTime, Sample, by, normal

# Queries, heads, heads of the cache, elements a head, rows of the cache, position
SIZES = [(1, 4, 4, 8, 12, 0), (1, 6, 2, 16, 21, 20), (5, 3, 1, 12, 9, 4), (3, 2, 2, 4, 3, 0),
         (7, 9, 3, 64, 33, 11), (1, 1, 1, 4, 1, 0)]


def attention(query, keys, values, start, mask, dropout, causal, scale):
    """Attention of queries [B, S, H, D] over rows [B, M, G, D], as its operator says: with a mask
    over all rows, and zeros where that hides all."""
    _, count, heads, size = query.shape
    scale = 1 / math.sqrt(size) if scale is None else scale
    keys, values = (np.repeat(a, heads // a.shape[2], 2) for a in (keys, values))
    if mask is None:
        mask = np.arange(keys.shape[1])[None] <= start + (
            np.arange(count) if causal else np.full(count, count - 1))[:, None]
    if mask.dtype == bool:
        mask = np.where(mask, 0, -np.inf)
    scores = scale * np.einsum("bshd,blhd->bhsl", query, keys) + mask
    weights = np.exp(scores - np.maximum(scores.max(-1, keepdims=True), np.finfo(float).min))
    weights /= np.maximum(weights.sum(-1, keepdims=True), np.finfo(float).tiny)
    return np.einsum("bhsl,blhd->bshd", weights, values)


def updated(cache, rows, start):
    result = cache.copy()
    result[:, start:start + rows.shape[1]] = rows
    return result


def cached(query, key, value, keys, values, start, _length, *others):
    keys, values = updated(keys, key, start), updated(values, value, start)
    return [attention(query, keys, values, start, *others), keys, values]


def _arrays(sizes, scale=1.0, batch=1):
    count, heads, kv_heads, size, rows, start = sizes
    query = normal(batch, count, heads, size) * np.float32(scale)
    new = [normal(batch, count, kv_heads, size, seed=seed) for seed in (1, 2)]
    caches = [normal(batch, rows, kv_heads, size, seed=seed) for seed in (3, 4)]
    return query, new, caches, start


def any_mask(*sizes, dtype="float32") -> np.ndarray:
    """A mask that hides some keys, and all from the first query of the last item."""
    mask = normal(*sizes, seed=5)
    shown = mask > -0.5
    if shown.size > sizes[-1]:
        shown.reshape(-1, *sizes[-2:])[-1, 0] = False
    return shown if dtype == "bool" else np.where(shown, mask, -np.inf).astype(dtype)


def _cached(sizes, causal=True, scale=None, factor=1.0, constants=(), name="",
            late=False, batch=1, mask=None) -> Sample:
    query, new, caches, start = _arrays(sizes, factor, batch)
    start = RunTime(start, base=-2) if late else start
    return Sample("sdpa_with_kv_cache.default",
                  [query, *new, *caches, start, 1, mask, 0, causal, scale], cached,
                  constants=constants, rtol=2e-6,
                  name=name or f"{by(sizes)}-{causal}-{scale}")


def _custom(sizes, causal=True, constants=(), batch=1, mask=None) -> Sample:
    query, _, caches, start = _arrays(sizes, batch=batch)
    return Sample("llama.custom_sdpa.default", [query, *caches, start, mask, 0.0, causal, None],
                  attention, constants=constants, rtol=2e-6,
                  name=f"{batch}x{by(sizes)}-{causal}-{constants}"
                  f"{'' if mask is None else f'-{mask.dtype}{mask.shape}'}")


def _batches() -> list[Sample]:
    """With several items, with masks of several forms, with heads of other sizes."""
    found = []
    for sizes in (SIZES[1], SIZES[2], SIZES[4], (2, 3, 3, 10, 9, 5), (9, 6, 2, 5, 14, 3)):
        count, heads, *_, rows, start = sizes
        found += [_cached(sizes, batch=batch, late=late,
                          name=f"{batch}x{by(sizes)}{'-late' * late}")
                  for batch, late in ((2, False), (3, True), (1, True))]
        found += [_custom(sizes, False, (), batch, any_mask(*mask, dtype=dtype))
                  for batch, mask, dtype in (
                      (1, (count, rows), "float32"), (2, (2, 1, count, rows), "float32"),
                      (2, (2, heads, count, rows), "bool"), (2, (heads, 1, rows), "float32"),
                      (1, (1, 1, 1, rows), "bool"))]
        found += [_cached(sizes, causal=False, batch=2, mask=any_mask(2, 1, count, rows),
                          name=f"masked-{by(sizes)}"),
                  _update(sizes, batch=2), _update(sizes, late=True, batch=3)]
    return found


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
                  rtol=2e-6, name=f"{by(sizes)}-{name}"
                  f"{'' if mask is None else mask.shape}-{scale}")


def _update(sizes, late=False, batch=1) -> Sample:
    _, (rows, _), (cache, _), start = _arrays(sizes, batch=batch)
    return Sample("update_cache.default", [rows, cache, RunTime(start, 1) if late else start],
                  lambda rows, cache, start: [np.zeros(1), updated(cache, rows, start)],
                  name=f"{batch}x{by(sizes)}{'-late' * late}")


def placed(rows, cache, _start, places):
    result = cache.copy()
    for item, row in np.ndindex(places.shape):
        result[item, places[item, row]] = rows[item, row]
    return [np.zeros(1), result]


def _update_at(batch, sizes, places) -> Sample:
    _, (rows, _), (cache, _), start = _arrays(sizes, batch=batch)
    return Sample("llama.update_cache_with_indices.default",
                  [rows, cache, start, np.array(places, np.int32)], placed,
                  outs=[((1,), "float32"), (cache.shape, "float32")],
                  name=f"{batch}x{by(sizes)}-{places}")


def _slice(sizes, dim, start, count) -> Sample:
    """A slice that begins where an input says."""
    return Sample("aten.slice_copy.Tensor",
                  [normal(*sizes), dim, RunTime(start), RunTime(start + count), 1],
                  lambda x, dim, start, end, step: x[(slice(None),) * dim + (slice(start, end),)],
                  rtol=0, name=f"{by(sizes)}-{dim}-{start}-late")


SAMPLES = [
    *map(_cached, SIZES),
    *(_cached(sizes, late=True, name=f"{by(sizes)}-late") for sizes in SIZES),
    *(_update(sizes, late) for sizes in SIZES[:3] for late in (False, True)),
    _update_at(1, SIZES[0], [[11]]), _update_at(2, SIZES[1], [[3], [20]]),
    _update_at(2, SIZES[2], [[7, 8, 0, 1, 2], [4, 4, 5, 4, 8]]),
    _update_at(3, (2, 3, 3, 10, 5, 0), [[1, 0], [4, 4], [2, 3]]),
    _slice((10, 6), 0, 3, 4),
    _slice((3, 9, 2, 5), 1, 0, 9),
    _slice((3, 9, 2, 5), 1, 8, 1),
    _cached((4, 2, 1, 8, 10, 3), causal=False),
    _cached((2, 2, 1, 8, 10, 3), scale=0.5),
    # One key outweighs all others. The rounding of scores in the thousands is in the exponents.
    replace(_cached((3, 4, 2, 8, 16, 9), factor=200.0, name="large"), rtol=1e-5),
    _cached((2, 4, 2, 8, 16, 9), constants=(3, 4), name="constants"),
    # Many tiles, and keys of many chunks
    _cached((70, 4, 2, 4, 4096, 4026), name="tiles"),
    _cached((40, 4, 2, 4, 4096, 4026), batch=2, name="tiles of a batch"),
    _custom((40, 4, 2, 4, 4096, 0), False, (), 2, any_mask(2, 1, 40, 4096)),
    _custom((3, 4, 2, 4, 10, 0), False, (4,), 2, any_mask(3, 10)),
    _plain((1, 3, 5, 7, 8, 8)), _plain((2, 2, 1, 6, 5, 3)), _plain((1, 1, 1, 1, 1, 1)),
    _plain((2, 3, 17, 9, 12, 10), mask=(17, 9)), _plain((2, 3, 4, 9, 8, 8), mask=(2, 1, 1, 9)),
    _plain((1, 2, 6, 40, 64, 64), mask=(1, 2, 6, 40), scale=0.3),
    _plain((1, 2, 3, 5, 4, 4), scale=0.0), _plain((2, 2, 3, 5, 6, 6), constants=(1, 2), name="c"),
    _plain((1, 2, 0, 5, 4, 4)),
    # More scores than fit into one block: of groups of heads, and of rows of a head
    _plain((1, 3, 130, 1600, 8, 8), name="heads"),
    _plain((1, 2, 150, 2050, 12, 8), mask=(150, 2050), name="rows"),
    *(_custom(sizes, causal, constants) for sizes in SIZES[1:3] for causal in (True, False)
      for constants in ((), (1, 2))),
    *_batches(),
]
