"""Host kernels that write at places which other tensors name, and some that move elements.

A negative index counts from the end; one outside of its dimension is an IndexError.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from vkrt.host.kernels import kernel


@kernel("aten::index_put.out")
def index_put(x, indices, values, accumulate=False):
    result = x.copy()
    # Where the indices are apart torch puts their dimensions in front, as numpy does.
    place: Any = tuple(slice(None) if index is None else index for index in indices)
    if accumulate:
        np.add.at(result, place, values)
    else:
        result[place] = values
    return result


def _along(dim: int, index: np.ndarray) -> tuple[np.ndarray, ...]:
    """Places for every element of `index`, which names them in dimension `dim`."""
    places: list[np.ndarray] = list(np.indices(index.shape, sparse=True))
    places[dim] = index
    return tuple(places)


def _lines(*arrays):
    """To torch 0-d tensors have one dimension."""
    return [array.reshape(1) if isinstance(array, np.ndarray) and array.ndim == 0 else array
            for array in arrays]


def _scattered(x, dim, index, source, add: bool):
    result, index, source = _lines(x.copy(), index, source)
    place = _along(int(dim), index)
    if isinstance(source, np.ndarray):
        source = source[tuple(slice(n) for n in index.shape)]
    if add:
        np.add.at(result, place, source)
    else:
        result[place] = source
    return result.reshape(x.shape)


@kernel("aten::scatter.src_out")
def scatter(x, dim, index, source):
    return _scattered(x, dim, index, source, add=False)


@kernel("aten::scatter.value_out")
def scatter_value(x, dim, index, value):
    return _scattered(x, dim, index, value, add=False)


@kernel("aten::scatter_add.out")
def scatter_add(x, dim, index, source):
    return _scattered(x, dim, index, source, add=True)


@kernel("aten::select_scatter.out")
def select_scatter(x, source, dim, index):
    result = x.copy()
    np.moveaxis(result, int(dim), 0)[int(index)] = source
    return result


@kernel("aten::diagonal_copy.out")
def diagonal(x, offset=0, dim1=0, dim2=1):
    return np.diagonal(x, int(offset), int(dim1), int(dim2))


@kernel("aten::stack.out")
def stack(tensors, dim=0):
    return np.stack(tensors, int(dim))


@kernel("aten::unbind_copy.int_out")
def unbind(x, dim=0):
    return tuple(np.moveaxis(x, int(dim), 0))


@kernel("aten::roll.out")
def roll(x, shifts, dims=()):
    amounts = tuple(int(n) for n in shifts)
    return np.roll(x, amounts, tuple(int(d) for d in dims)) if dims else np.roll(x, amounts[0])
