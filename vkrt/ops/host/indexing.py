"""Host kernels that write at places which other tensors name, and some that move elements.

A negative index counts from the end; one outside of its dimension is an IndexError.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from vkrt.ops.dtypes import ANY
from vkrt.ops.indexing import indexed_sizes
from vkrt.ops.registry import host_kernel
from vkrt.ops.shape import select_sizes
from vkrt.ops.sizes import fail, need_broadcast, need_sizes, wrap, wrap_all

if TYPE_CHECKING:
    import numpy as np
else:
    from vkrt.late import numpy as np


def index_put_sizes(x, indices, values, _accumulate):
    need_broadcast(values, indexed_sizes(x, indices), "values")
    return (x,)


@host_kernel("aten::index_put.out", "self:T indices:[T.int32?] values:T accumulate:b?",
             sizes=index_put_sizes, dtypes=ANY)
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


def scatter_sizes(x, dim, index, source):
    target, places, values = x or (1,), index or (1,), source or (1,)
    dim = wrap(dim, len(x))
    if not len(target) == len(places) == len(values):
        fail("index", f"expected rank {len(x)} of it and of the source, got sizes {list(index)} "
             f"and {list(source)}")
    for d, (count, size, given) in enumerate(zip(places, target, values, strict=True)):
        if (d != dim and count > size) or count > given or (math.prod(places) and not size):
            fail("index", f"sizes {list(index)} reach past {list(x)} or {list(source)}")
    return (x,)


@host_kernel("aten::scatter.src_out", "self:T dim:i index:T.int32 src:T",
             sizes=scatter_sizes, dtypes=ANY)
def scatter(x, dim, index, source):
    return _scattered(x, dim, index, source, add=False)


@host_kernel("aten::scatter.value_out", "self:T dim:i index:T.int32 value:n",
             sizes=lambda x, dim, index, _value: scatter_sizes(x, dim, index, index), dtypes=ANY)
def scatter_value(x, dim, index, value):
    return _scattered(x, dim, index, value, add=False)


@host_kernel("aten::scatter_add.out", "self:T dim:i index:T.int32 src:T",
             sizes=scatter_sizes, dtypes=ANY)
def scatter_add(x, dim, index, source):
    return _scattered(x, dim, index, source, add=True)


def select_scatter_sizes(x, source, dim, index):
    need_sizes(source, select_sizes(x, dim, index)[0], "src")
    return (x,)


@host_kernel("aten::select_scatter.out", "self:T src:T dim:i index:i",
             sizes=select_scatter_sizes, dtypes=ANY)
def select_scatter(x, source, dim, index):
    result = x.copy()
    np.moveaxis(result, int(dim), 0)[int(index)] = source
    return result


def diagonal_sizes(x, offset, dim1, dim2):
    first, second = wrap(dim1 or 0, len(x), "dim1"), wrap(1 if dim2 is None else dim2, len(x),
                                                          "dim2")
    if first == second:
        fail("dim2", f"expected another dimension than dim1, {first}")
    offset = offset or 0
    length = min(x[first] + min(offset, 0), x[second] - max(offset, 0))
    return ((*(n for d, n in enumerate(x) if d not in (first, second)), max(length, 0)),)


@host_kernel("aten::diagonal_copy.out", "self:T offset:i? dim1:i? dim2:i?",
             sizes=diagonal_sizes, dtypes=ANY)
def diagonal(x, offset=0, dim1=0, dim2=1):
    return np.diagonal(x, int(offset), int(dim1), int(dim2))


def stack_sizes(tensors, dim):
    if not tensors:
        fail("tensors", "expected at least one")
    for sizes in tensors:
        need_sizes(sizes, tensors[0], "tensors")
    dim = wrap(dim or 0, len(tensors[0]) + 1)
    return ((*tensors[0][:dim], len(tensors), *tensors[0][dim:]),)


@host_kernel("aten::stack.out", "tensors:[T] dim:i?", sizes=stack_sizes, dtypes=ANY)
def stack(tensors, dim=0):
    return np.stack(tensors, int(dim))


def unbind_sizes(x, dim):
    if not x:
        fail("self", "a 0-d tensor cannot be split")
    dim = wrap(dim, len(x))
    return ((*x[:dim], *x[dim + 1:]),) * x[dim]


@host_kernel("aten::unbind_copy.int_out", "self:T dim:i", sizes=unbind_sizes, dtypes=ANY)
def unbind(x, dim=0):
    return tuple(np.moveaxis(x, int(dim), 0))


def roll_sizes(x, shifts, dims):
    wrap_all(dims or (), len(x))
    if len(shifts) != (len(dims) if dims else 1):
        fail("shifts", f"expected as many as dimensions, got {list(shifts)}")
    return (x,)


@host_kernel("aten::roll.out", "self:T shifts:[i] dims:[i]?", sizes=roll_sizes, dtypes=ANY)
def roll(x, shifts, dims=()):
    amounts = tuple(int(n) for n in shifts)
    return np.roll(x, amounts, tuple(int(d) for d in dims)) if dims else np.roll(x, amounts[0])
