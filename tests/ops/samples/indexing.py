"""Samples of operators that read elements at places that integers name."""

import numpy as np
from harness import Sample, booleans, integers, normal, small


def places(size: int, *sizes: int, seed: int = 0, low: int | None = None) -> np.ndarray:
    """int32 numbers in [low, size), by default [-size, size)."""
    return integers(*sizes, low=-size if low is None else low, high=size, seed=seed)


def limited(index: np.ndarray, size: int) -> np.ndarray:
    """Indices beyond the ends as the first and the last place."""
    return np.clip(np.where(index < 0, index + size, index), 0, size - 1)


def embedding(weight, index, *_):
    return weight[limited(index, weight.shape[0])]


def embedding_sample(sizes, index, name="", make=normal, constants=(0,)):
    return Sample("aten.embedding.default", [make(*sizes), index, -1, False, False], embedding,
                  constants=constants, rtol=0, name=f"{sizes} {list(index.shape)} {name}")


def index_select(x, dim, index):
    return np.take(x, limited(np.atleast_1d(index), x.shape[dim]), dim) if x.ndim else x


def select_sample(array, dim, index, name=""):
    return Sample("aten.index_select.default", [array, dim, index], index_select, rtol=0,
                  name=f"{array.shape} {dim} {name}")


def gather(x, dim, index, _):
    if x.ndim == 0:
        return x + np.zeros(index.shape)
    inside = x[tuple(slice(n) if d != dim % x.ndim else slice(None)
                     for d, n in enumerate(index.shape))]
    return np.take_along_axis(inside, limited(index, x.shape[dim]), dim)


def gather_sample(array, dim, index, name=""):
    return Sample("aten.gather.default", [array, dim, index, False], gather, rtol=0,
                  name=f"{array.shape} {dim} {index.shape} {name}")


def indexed(x, indices):
    """x[indices]; numpy puts the indexed dimensions where torch does for None as slices."""
    return x[tuple(slice(None) if i is None else limited(i, x.shape[d])
                   for d, i in enumerate(indices))]


def index_sample(array, *indices, constants=(), name=""):
    text = [None if i is None else list(i.shape) for i in indices]
    return Sample("aten.index.Tensor", [array, list(indices)], indexed, rtol=0,
                  constants=constants, name=f"{array.shape} {text} {name}")


def unfold(x, dim, size, step):
    if x.ndim == 0:
        return x.reshape(1)[:size]
    return np.lib.stride_tricks.sliding_window_view(x, size, dim)[
        (slice(None),) * (dim % x.ndim) + (slice(None, None, step),)]


WILD = np.array([0, -1, 99, -99, 2**31 - 1, -2**31, 3], np.int32)

SAMPLES = [
    embedding_sample((11, 8), places(11, 2, 5, low=0)),
    embedding_sample((11, 7), places(11, 3, low=0)),
    # Rows of which an invocation copies 2, 4 and 8 texels on CPU drivers
    *(embedding_sample((11, 64), places(11, count, low=0)) for count in (33, 65, 130)),
    embedding_sample((11, 12), np.array(4, np.int32)),
    embedding_sample((7, 8), WILD, "limited"),
    embedding_sample((300, 4), places(300, 2, 3, 5, low=0)),
    embedding_sample((9, 6), places(9, 2, 5, low=0), "computed", constants=()),
    embedding_sample((9, 6), places(9, 2, 5, low=0), "int32", make=integers),
    select_sample(normal(4, 6, 5, 7), 0, places(4, 3)),
    select_sample(normal(4, 6, 5, 7), 1, places(6, 9)),
    select_sample(normal(4, 6, 5, 7), -2, places(5, 2)),
    select_sample(normal(4, 6, 5, 7), 3, places(7, 10)),
    select_sample(normal(4, 6, 5, 8), 3, places(8, 5)),
    select_sample(normal(9), 0, WILD, "limited"),
    select_sample(normal(3, 5), 1, np.array(-2, np.int32), "0-d index"),
    select_sample(np.array(2.5, np.float32), 0, np.zeros(1, np.int32), "0-d"),
    select_sample(booleans(5, 3), 0, places(5, 7), "bool"),
    select_sample(small(5, 3, dtype=np.uint8), 0, places(5, 7), "uint8"),
    select_sample(small(5, 3, dtype=np.int8), 1, places(3, 7), "int8"),
    select_sample(integers(5, 3), 1, places(3, 7), "int32"),
    select_sample(normal(2, 3, 2, 2, 3, 2, 2, 5), 4, places(3, 4), "rank 8"),
    gather_sample(normal(5, 7), 0, places(5, 3, 6)),
    gather_sample(normal(5, 7), 1, places(7, 5, 9)),
    gather_sample(normal(2, 3, 5, 6), 1, places(3, 2, 4, 5, 6)),
    gather_sample(normal(2, 3, 5, 6), -1, places(6, 1, 3, 2, 4)),
    gather_sample(normal(2, 6, 5, 3), 2, WILD.reshape(1, 1, 7, 1), "limited"),
    gather_sample(normal(9), 0, places(9, 4)),
    gather_sample(np.array(2.5, np.float32), 0, np.zeros((), np.int32)),
    gather_sample(booleans(5, 6), 0, places(5, 3, 6), "bool"),
    gather_sample(small(5, 6, dtype=np.uint8), 1, places(6, 3, 6), "uint8"),
    gather_sample(small(5, 6, dtype=np.int8), 1, places(6, 3, 6), "int8"),
    gather_sample(integers(5, 6), 1, places(6, 3, 6), "int32"),
    gather_sample(normal(2, 3, 2, 2, 3, 2, 2, 5), 4, places(3, 1, 2, 2, 1, 4, 2, 1, 3), "rank 8"),
    index_sample(normal(5, 7), places(5, 4)),
    index_sample(normal(5, 7), None, places(7, 4)),
    index_sample(normal(9), places(9, 2, 3)),
    index_sample(normal(9), np.array(-3, np.int32), name="0-d index"),
    index_sample(normal(2, 6, 5, 7), None, None, places(5, 3, 1), places(7, 4)),
    index_sample(normal(1, 6, 5, 7), None, None, None, places(7, 9)),
    index_sample(normal(2, 6, 5, 7), None, places(6, 3), None, places(7, 3)),
    index_sample(normal(2, 6, 5, 7), places(2, 4), None, places(5, 2, 4)),
    index_sample(normal(2, 6, 5, 7), places(2, 4), places(6, 3, 1), places(5, 2, 1, 1), None),
    index_sample(normal(3, 5), places(3, 4), places(5, 4)),
    index_sample(normal(3, 5, 6), places(3, 4), places(5, 2, 1), places(6, 4)),
    index_sample(normal(3, 6), places(3, 4), WILD[:4], name="limited"),
    index_sample(normal(4, 9), WILD, name="limited"),
    index_sample(integers(5, 7), None, places(7, 4), name="int32"),
    index_sample(booleans(5, 7), None, places(7, 4), name="bool"),
    index_sample(normal(5, 7), None, places(7, 4), constants=[0], name="constant"),
    index_sample(normal(5, 7), None, places(7, 4), constants=[1], name="constant index"),
    index_sample(normal(5, 7), None, places(7, 4).astype(np.int64), constants=[1],
                 name="constant int64"),
    index_sample(normal(5, 7), None, None, name="none"),
    index_sample(normal(2, 3, 2, 2, 3, 2, 2, 5), None, places(3, 4), None, None, places(3, 2, 1),
                 name="rank 8"),
    *(Sample("aten.unfold_copy.default", [array, dim, size, step], unfold, rtol=0,
             name=f"{array.shape} {dim} {size} {step}")
      for array, dim, size, step in (
          (normal(2, 7), 1, 3, 2), (normal(2, 7), 0, 1, 1), (normal(9), -1, 4, 1),
          (normal(2, 3, 6, 5), 2, 4, 2), (normal(2, 6, 5, 8), 1, 3, 3), (integers(3, 8), 1, 3, 1),
          (booleans(3, 8), 1, 3, 1), (np.array(2.5, np.float32), 0, 1, 1))),
]
