"""Host kernels that write at places which other tensors name, where the device does not.

A negative index counts from the end; one outside of its dimension is an IndexError.
"""

from __future__ import annotations

from typing import Any

from vkrt.ops.dtypes import ANY
from vkrt.ops.host import np
from vkrt.ops.host.reduction import line_of
from vkrt.ops.parts import diagonal_sizes
from vkrt.ops.registry import host_kernel
from vkrt.ops.scatter import index_put_sizes, number_sizes, scatter_sizes
from vkrt.ops.sizes import need_sizes


@host_kernel("aten::index_put.out", "self:T indices:[T.int32?] values:T accumulate:b?",
             sizes=index_put_sizes, dtypes=ANY)
def index_put(x, indices, values, accumulate=False):
    result = x.copy()
    # Where indexed dimensions are not neighbours, torch puts the new ones in front, as numpy does.
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


def _scattered(x, dim, index, source, add: bool):
    result, index = line_of(x.copy()), line_of(index)
    place = _along(int(dim), index)
    if isinstance(source, np.ndarray):
        source = line_of(source)[tuple(slice(n) for n in index.shape)]
    if add:
        np.add.at(result, place, source)
    else:
        result[place] = source
    return result.reshape(x.shape)


@host_kernel("aten::scatter.src_out", "self:T dim:i index:T.int32 src:T",
             sizes=scatter_sizes, dtypes=ANY)
@host_kernel("aten::scatter.value_out", "self:T dim:i index:T.int32 value:n",
             sizes=number_sizes, dtypes=ANY)
def scatter(x, dim, index, source):
    return _scattered(x, dim, index, source, add=False)


@host_kernel("aten::scatter_add.out", "self:T dim:i index:T.int32 src:T",
             sizes=scatter_sizes, dtypes=ANY)
def scatter_add(x, dim, index, source):
    return _scattered(x, dim, index, source, add=True)


def diagonal_scatter_sizes(x, source, offset, dim1, dim2):
    need_sizes(source, diagonal_sizes(x, offset, dim1, dim2)[0], "src")
    return (x,)


@host_kernel("aten::diagonal_scatter.out", "self:T src:T offset:i? dim1:i? dim2:i?",
             sizes=diagonal_scatter_sizes, dtypes=ANY)
def diagonal_scatter(x, source, offset=0, dim1=0, dim2=1):
    """x with the elements of the source where the indices in two dimensions are `offset` apart."""
    result, offset = x.copy(), int(offset)
    diagonal = np.arange(source.shape[-1])
    moved = np.moveaxis(result, (int(dim1), int(dim2)), (-2, -1))
    moved[..., diagonal + max(-offset, 0), diagonal + max(offset, 0)] = source
    return result
