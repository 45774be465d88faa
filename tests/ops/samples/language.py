"""Samples of the operators of language models: norms and rotary position embeddings."""

import numpy as np
from harness import RunTime, Sample, by, normal

RTOL = 1e-6


def rms_norm(x, weight, epsilon):
    row = np.atleast_1d(x)
    squares = (row * row).sum(-1, keepdims=True) / max(row.shape[-1], 1)
    return (row / np.sqrt(squares + epsilon)).reshape(x.shape) * weight


def _norm(sizes, constants=(1,), scale=1.0, zeros=False, epsilon=1e-5, **options) -> Sample:
    x = normal(*sizes, scale=scale)
    if zeros:
        x[..., :1, :] = 0
    name = f"{by(sizes)}{'' if constants else '-computed'}"
    return Sample("et_vk.rms_norm.default", [x, normal(sizes[-1], seed=1), epsilon], rms_norm,
                  constants=constants, rtol=RTOL,
                  name=name + (f"-{scale}" if scale != 1 else "") + ("-zeros" if zeros else ""),
                  **options)


def turned_pairs(x, cosine, sine):
    even, odd = x[..., ::2], x[..., 1::2]
    turned = np.stack((even * cosine - odd * sine, even * sine + odd * cosine), -1)
    return turned.reshape(x.shape)


def turned_halves(x, cosine, sine):
    size = cosine.shape[-1]
    turned, rest = x[..., :size], x[..., size:]
    other = np.concatenate((-turned[..., size // 2:], turned[..., :size // 2]), -1)
    return np.concatenate((turned * cosine + other * sine, rest), -1)


def pairs(q, k, cosines, sines):
    cosine, sine = (table[:, None] for table in (cosines, sines))
    return [turned_pairs(q, cosine, sine), turned_pairs(k, cosine, sine)]


def halves(q, k, cosines, sines, start):
    cosine, sine = (table[start:start + q.shape[1], None] for table in (cosines, sines))
    return [turned_halves(q, cosine, sine), turned_halves(k, cosine, sine)]


def interleaved(x, angles):
    angles = angles.reshape(x.shape[1], -1, 2)
    return turned_pairs(x, angles[..., 0], angles[..., 1])


def _tables(rows, columns):
    angles = np.outer(np.arange(rows), 10.0 ** -np.linspace(0, 3, columns or 1)[:columns])
    return [np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)]


def _queries_and_keys(batch, positions, heads, key_heads, size):
    return [normal(batch, positions, heads, size),
            normal(batch, positions, key_heads, size, seed=1)]


def _outs(*arrays):
    return [(array.shape, "float32") for array in arrays]


def _pairs(*sizes, constants=(2, 3)) -> Sample:
    """Sizes: batch, positions, heads of queries and of keys, elements of a head."""
    q, k = _queries_and_keys(*sizes)
    return Sample("et_vk.apply_rotary_emb.default", [q, k, *_tables(sizes[1], sizes[4] // 2)],
                  pairs, outs=_outs(q, k), constants=constants, rtol=RTOL,
                  name=f"{sizes}{'' if constants else ' computed'}")


def _halves(*sizes, rows, turned, start, constants=(2, 3)) -> Sample:
    q, k = _queries_and_keys(*sizes)
    return Sample("et_vk.apply_rotary_emb_hf.default", [q, k, *_tables(rows, turned), start],
                  halves, outs=_outs(q, k), constants=constants, rtol=RTOL,
                  name=f"{sizes} {turned} {start!r}{'' if constants else ' computed'}")


def _heads_first(batch, heads, key_heads, positions, size, turned, constants=(2, 3)) -> Sample:
    """Queries and keys [batch, heads, positions, size], tables [1, positions, turned]."""
    arrays = [array.swapaxes(1, 2).copy()
              for array in _queries_and_keys(batch, positions, heads, key_heads, size)]
    tables = [table[None] for table in _tables(positions, turned)]

    def expected(q, k, cosines, sines, start):
        turned = halves(q.swapaxes(1, 2), k.swapaxes(1, 2), cosines[0], sines[0], start)
        return [array.swapaxes(1, 2) for array in turned]

    return Sample("et_vk.apply_rotary_emb_hf.default", [*arrays, *tables, 0], expected,
                  outs=_outs(*arrays), constants=constants, rtol=RTOL,
                  name=f"heads first {arrays[0].shape} {turned}{'' if constants else ' computed'}")


def _interleaved(*sizes, angles, constants=(1,)) -> Sample:
    return Sample("et_vk.apply_rotary_emb_interleaved.default",
                  [normal(*sizes), normal(*angles, seed=1)], interleaved, constants=constants,
                  rtol=RTOL, name=f"{sizes} {angles}{'' if constants else ' computed'}")


SAMPLES = [
    # One row shared by many invocations, rows that are not whole texels, several parts a row.
    _norm((1, 64)), _norm((1, 1, 576)), _norm((2, 5, 37)), _norm((300, 12)), _norm((3, 2, 2, 50)),
    _norm((7,)), _norm((1, 1)), _norm((1, 9000)), _norm((40, 33), constants=()),
    _norm((5, 18), constants=()), _norm((0, 8)), _norm((2, 0), half=False),
    # What the exporter takes for the weight: a number, a gate, and what has more sizes than rows
    *(Sample("et_vk.rms_norm.default", [normal(*sizes), normal(*weight, seed=1), 1e-5], rms_norm,
             constants=constants, rtol=RTOL, name=f"{by(sizes)}-times-{by(weight)}-{constants}")
      for sizes, weight in (((4, 18), ()), ((4, 18), (1,)), ((3, 5, 18), (3, 5, 18)),
                            ((3, 1, 7), (2, 1, 5, 7)), ((3, 5, 1), (6,)), ((), ()))
      for constants in ((), (1,))),
    # Rows of zeros, and those whose squares leave what a half, or a float's mean, holds well.
    _norm((3, 20), zeros=True), _norm((4, 60), scale=1000.0),
    _norm((4, 60), scale=1e-4, half=False),
    _pairs(1, 5, 4, 2, 16), _pairs(1, 1, 9, 3, 64), _pairs(2, 3, 2, 2, 10), _pairs(1, 4, 1, 1, 2),
    _pairs(1, 3, 2, 1, 6, constants=()), _pairs(1, 7, 3, 1, 8, constants=()),
    _pairs(1, 0, 2, 1, 8),
    # Halves of whole texels and others, all elements turned and fewer, the last row of the tables.
    _halves(1, 5, 4, 2, 16, rows=32, turned=16, start=3),
    _halves(1, 5, 4, 2, 16, rows=32, turned=16, start=RunTime(27)),
    _halves(1, 1, 4, 2, 16, rows=32, turned=12, start=RunTime(5, base=7)),
    _halves(1, 1, 9, 3, 64, rows=16, turned=64, start=15),
    _halves(2, 3, 2, 1, 24, rows=8, turned=8, start=0),
    _halves(1, 3, 2, 2, 20, rows=9, turned=12, start=6),
    _halves(1, 3, 2, 1, 7, rows=5, turned=6, start=1),
    _halves(1, 2, 1, 1, 5, rows=4, turned=2, start=1),
    _halves(1, 3, 2, 1, 12, rows=7, turned=10, start=2, constants=()),
    _heads_first(1, 4, 2, 5, 16, 16), _heads_first(2, 3, 3, 1, 8, 2),
    _heads_first(1, 2, 1, 6, 7, 6), _heads_first(1, 4, 2, 12, 8, 2, constants=()),
    _heads_first(1, 1, 1, 3, 12, 12, constants=()),
    _heads_first(1, 2, 1, 0, 8, 4),
    _halves(1, 2, 2, 1, 8, rows=4, turned=0, start=1),
    _interleaved(2, 6, 16, angles=(6, 16)), _interleaved(1, 5, 10, angles=(1, 5, 5, 2)),
    _interleaved(1, 5, 10, angles=(5, 10), constants=()),
    _interleaved(2, 3, 6, angles=(3, 3, 2), constants=()),
]
