"""Tensors of 8 dimensions, no two of which can be walked as one."""

import numpy as np
from harness import Sample, booleans, integers, normal

from samples.shape import padded

SIZES = (2, 3, 2, 1, 3, 2, 2, 5)
ALTERNATING = (1, 3, 1, 1, 3, 1, 2, 1)
ORDER = [6, 1, 4, 7, 0, 3, 2, 5]
X = normal(*SIZES)


def sample(name, args, expect, **options):
    return Sample(name, args, expect, name=f"rank 8 {options.pop('label', '')}", **options)


def permuted(name, args, expect, **options):
    """The operator on a tensor whose dimensions lie in another order."""
    lying = np.ascontiguousarray(args[0].transpose(ORDER))
    return Sample(name, [lying, *args[1:]], expect, name="rank 8 permuted", **options)


SAMPLES = [
    sample("aten.view_copy.default", [X, [6, 2, 3, 20]], lambda x, s: x.reshape(s)),
    sample("aten.view_copy.default", [X.reshape(6, 6, 20), list(SIZES)],
           lambda x, s: x.reshape(s), label="to"),
    *(sample("aten.permute_copy.default", [array, ORDER], lambda x, p: x.transpose(p),
             label=str(array.dtype)) for array in (X, integers(*SIZES), booleans(*SIZES))),
    sample("aten.expand_copy.default", [normal(*ALTERNATING), list(SIZES), False],
           lambda x, s, _: np.broadcast_to(x, s)),
    sample("aten.repeat.default", [normal(2, 1, 2, 1, 3, 1, 2, 3), [2, 1, 3, 2, 1, 2, 1, 2]],
           np.tile),
    sample("aten.repeat.default", [normal(2, 1, 2, 1, 2, 1, 2, 3), [2] * 8], np.tile,
           label="every one"),
    *(sample("aten.slice_copy.Tensor", [X, dim, 1, None, 2],
             lambda x, d, *_: np.take(x, range(1, x.shape[d], 2), d), label=dim)
      for dim in (1, 4, 7)),
    *(sample("aten.select_copy.int", [X, dim, 1], lambda x, d, i: np.take(x, i, d), label=dim)
      for dim in (0, 4, 7)),
    sample("aten.split_with_sizes_copy.default", [X, [1, 2], 4],
           lambda x, sizes, d: np.split(x, [1], d)),
    *(sample("aten.cat.default", [[X, X + 1], dim], lambda a, d: np.concatenate(a, d), label=dim)
      for dim in (0, 4, 7)),
    sample("aten.flip.default", [X, [0, 2, 4, 7]], lambda x, d: np.flip(x, d)),
    sample("aten.flip.default", [X, list(range(8))], lambda x, d: np.flip(x, d), label="all"),
    sample("aten.constant_pad_nd.default", [X, [1, 2, 0, 1, 1, 0], 0.5], padded),
    sample("aten.constant_pad_nd.default", [X, [1] * 16, 0.5], padded, label="all"),
    sample("aten.add.Tensor", [X, normal(*ALTERNATING), 1], lambda a, b, _: a + b),
    sample("aten.mul.Tensor", [normal(2, 1, 2, 1, 3, 1, 2, 1), normal(*ALTERNATING)],
           lambda a, b: a * b, label="both"),
    sample("aten.where.self", [booleans(2, 1, 2, 1, 3, 1, 2, 1), normal(*ALTERNATING), X],
           np.where, dtype="float32"),
    sample("aten.eq.Tensor", [integers(*SIZES, low=0, high=2),
                              integers(*ALTERNATING, low=0, high=2)], np.equal, dtype="bool"),
    *(make("aten.amax.default", [X, dims, keepdim],
           lambda x, d, k: x.max(axis=tuple(d), keepdims=k))
      for make in (sample, permuted) for dims in ([0, 2, 4, 6], [1, 5, 7], list(range(8)))
      for keepdim in (False, True)),
    *(sample("aten.sum.dim_IntList", [X, [1, 2, 4, 7], keepdim, None],
             lambda x, d, k, _: x.sum(axis=tuple(d), keepdims=k)) for keepdim in (False, True)),
    *(make("aten.argmax.default", [X, 4, False], lambda x, d, _: x.argmax(d), dtype="int32")
      for make in (sample, permuted)),
    *(make("aten._softmax.default", [X, dim, False],
           lambda x, d, _: np.exp(x) / np.exp(x).sum(d, keepdims=True))
      for make in (sample, permuted) for dim in (4, 7)),
    sample("aten.unfold_copy.default", [X[..., 0], 4, 2, 1],
           lambda x, d, n, s: np.lib.stride_tricks.sliding_window_view(x, n, d)),
    sample("aten.slice_scatter.default", [X, X[:, :, :, :, 1:2] + 1, 4, 1, 2, 1],
           lambda x, p, *_: np.concatenate([x[:, :, :, :, :1], p, x[:, :, :, :, 2:]], 4)),
]
