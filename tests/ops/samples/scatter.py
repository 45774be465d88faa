"""Samples of operators that put elements to places that integers name, some of them twice."""

import numpy as np
from harness import Sample, integers, normal, of_each_dtype


def places(size: int, *sizes: int, seed: int = 0, low: int = 0) -> np.ndarray:
    """int32 numbers in [low, size)."""
    return integers(*sizes, low=low, high=size, seed=seed)


def apart(size: int, *sizes: int) -> np.ndarray:
    """Different int32 numbers in [0, size)."""
    return np.random.default_rng(size).permutation(size)[:np.prod(sizes)].reshape(
        sizes).astype(np.int32)


# One element after the other, in the order of the list

FUNCTIONS = {
    "set": lambda old, new: new, "sum": np.add, "prod": np.multiply, "mean": np.add,
    "amax": np.maximum, "amin": np.minimum,
}


def scattered(x, dim, index, source, how="set", include=True):
    shape = x.shape
    x, index = np.atleast_1d(x).copy(), np.atleast_1d(index)
    source = np.broadcast_to(np.asarray(source).astype(x.dtype), index.shape) \
        if np.ndim(source) == 0 else source
    came = np.zeros(x.shape, int)
    for where in np.ndindex(index.shape):
        place = list(where)
        place[dim] = index[where]
        spot, new = tuple(place), source[where]
        fresh = not include and not came[spot]
        x[spot] = new if fresh else FUNCTIONS[how](x[spot], new)
        came[spot] += 1
    if how == "mean":
        count = came + (1 if include else 0)
        means = x // np.maximum(count, 1) if x.dtype.kind == "i" else x / np.maximum(count, 1)
        x = np.where(came > 0, means, x)
    return x.reshape(shape)


def put(x, indices, values, accumulate):
    result = x.copy()
    place = tuple(slice(None) if index is None else index for index in indices)
    if accumulate:
        np.add.at(result, place, values)
    else:
        result[place] = values
    return result


def put_sample(x, indices, values, accumulate=False, name=""):
    text = [None if i is None else list(i.shape) for i in indices]
    return Sample("aten.index_put.default", [x, indices, values, accumulate], put, rtol=1e-6,
                  name=f"{x.shape} {x.dtype} {text} {values.shape} {accumulate} {name}")


# sizes of the tensor, dimension, sizes of the index
ALONG = [((5, 7), 1, (5, 7)), ((5, 7), 0, (4, 6)), ((3, 6, 8), 1, (2, 9, 5)), ((9,), 0, (4,)),
         ((2, 3, 4, 5), -1, (2, 3, 4, 3)), ((), 0, ())]

SAMPLES = [
    *(Sample("aten.scatter.src", [array, dim, places(array.shape[dim] if sizes else 1, *index),
                                  np.resize(array.reshape(-1)[::-1], index)],
             scattered, rtol=0, name=f"{sizes} {dim} {index} {array.dtype}")
      for sizes, dim, index in ALONG for array in of_each_dtype(*sizes).values()),
    # More elements than the index names
    Sample("aten.scatter.src", [normal(5, 7), 0, places(5, 3, 6), normal(5, 9)], scattered,
           rtol=0, name="wide source"),
    *(Sample("aten.scatter.value", [array, 1, places(6, 3, 9, 5), 2], scattered, rtol=0,
             name=f"{array.dtype}") for array in of_each_dtype(3, 6, 8).values()),
    # Masks are made with finfo.min.
    *(Sample("aten.scatter.value", [normal(9), 0, places(9, 3), value], scattered, rtol=0,
             half=False, name=str(value)) for value in (-float(np.finfo(np.float32).max), 1e300)),
    *(Sample("aten.scatter_add.default", [array, dim, places(array.shape[dim] if sizes else 1,
                                                             *index), np.resize(array, index)],
             lambda x, d, i, s: scattered(x, d, i, s, "sum"),
             name=f"{sizes} {dim} {index} {array.dtype}")
      for sizes, dim, index in ALONG for array in (normal(*sizes), integers(*sizes))),
    *(Sample("aten.scatter_reduce.two", [array, 1, places(7, 5, 9), np.resize(array, (5, 9)), how,
                                         include], scattered, rtol=1e-5, half=how != "prod",
             name=f"{how} {include} {array.dtype}")
      for how in ("sum", "prod", "mean", "amax", "amin") for include in (True, False)
      for array in (normal(5, 7), integers(5, 7, low=-3, high=4))),
    *(put_sample(array, [apart(6, 3)], np.resize(array, (3, 7)), name="rows")
      for array in of_each_dtype(6, 7).values()),
    # The same place twice: the last stays, or all are added.
    *(put_sample(x, indices, values, accumulate)
      for accumulate in (False, True)
      for x, indices, values in (
          (normal(6, 7), [np.int32([1, -2, 1])], normal(3, 7)),
          (normal(6, 7), [None, np.int32([1, 2, 1, 0])], normal(6, 4)),
          (normal(6, 7), [np.int32([1, 2, 1]), np.int32([3, 6, 3])], normal(3)),
          (normal(9), [np.int32([[8, -1], [0, 3]])], normal(2, 2)),
          (normal(2, 5, 6, 7), [None, np.int32([[4, 1], [1, 0]]), np.int32([0, 5])],
           normal(2, 2, 2, 7)),
          (normal(3, 5, 6), [np.int32([2, 1, 2]), None, np.int32([0, 5, 0])], normal(3, 5)),
          (normal(4, 5, 8), [np.int32([3, 0])], normal(5, 1)),
          (normal(4, 5, 8), [np.int32([3, 3])], np.array(2.5, np.float32)),
          (integers(4, 6), [np.int32([3, 3])], integers(2, 6)),
          (np.array([1, 2, 3, 4, 5], np.int8), [np.int32([3, 3])], np.array([1, 2], np.int8)))),
    put_sample(normal(4, 6), [np.zeros(0, np.int32)], normal(0, 6)),
]
