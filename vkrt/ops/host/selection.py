"""Host kernels that choose one element of each line: medians, the k-th smallest, the most frequent.

NaN is greater than every number. The index given for equal elements is that of the first in the
line, but for the most frequent element that of the last, as eager PyTorch mostly does.
"""

from __future__ import annotations

import math

from vkrt.ops.dtypes import ANY
from vkrt.ops.host import np
from vkrt.ops.host.reduction import line_of, order_of
from vkrt.ops.reduction import extreme_and_index_sizes, reduced_sizes
from vkrt.ops.registry import host_kernel
from vkrt.ops.sizes import fail, wrap


def _chosen(x: np.ndarray, places: np.ndarray, dim: int, keepdim: bool | None
            ) -> tuple[np.ndarray, np.ndarray]:
    """Values and indices in each line, by the place of one element each, with a size of 1 in
    `dim`."""
    values = np.take_along_axis(line_of(x), places, dim)
    if keepdim and x.ndim:
        return values, places
    return values.squeeze(dim), places.squeeze(dim)


def _numbers(x: np.ndarray, dim: int) -> np.ndarray:
    return np.count_nonzero(x == x, dim, keepdims=True)


def _median(x: np.ndarray, dim: int, keepdim: bool | None, skips_nan: bool
            ) -> tuple[np.ndarray, np.ndarray]:
    """The lower of two middle elements. A line with NaN gives NaN, unless `skips_nan`."""
    line = line_of(x)
    count, size = _numbers(line, dim), line.shape[dim]
    place = (np.maximum(count - 1, 0) // 2 if skips_nan
             else np.where(count == size, (size - 1) // 2, count))
    order = order_of(line, dim, False)
    return _chosen(x, np.take_along_axis(order, place, dim), dim, keepdim)


@host_kernel("aten::median.dim_values", "self:T dim:i keepdim:b?",
             sizes=extreme_and_index_sizes, dtypes=ANY)
def median_along(x, dim, keepdim=False):
    return _median(x, int(dim), keepdim, False)


@host_kernel("aten::nanmedian.dim_values", "self:T dim:i keepdim:b?",
             sizes=extreme_and_index_sizes, dtypes=ANY)
def nanmedian_along(x, dim, keepdim=False):
    return _median(x, int(dim), keepdim, True)


@host_kernel("aten::median.out", "self:T", sizes=reduced_sizes, dtypes=ANY)
def median(x):
    return _median(x.reshape(-1), 0, False, False)[0] if x.size else math.nan


@host_kernel("aten::nanmedian.out", "self:T", sizes=reduced_sizes, dtypes=ANY)
def nanmedian(x):
    return _median(x.reshape(-1), 0, False, True)[0] if x.size else math.nan


def kth_sizes(x, k, dim, keepdim):
    dim = wrap(-1 if dim is None else dim, len(x))
    size = x[dim] if x else 1
    if not 1 <= k <= size:
        fail("k", f"expected 1 to {size}, the size of dimension {dim}, got {k}")
    return extreme_and_index_sizes(x, dim, keepdim)


@host_kernel("aten::kthvalue.values", "self:T k:i dim:i? keepdim:b?", sizes=kth_sizes, dtypes=ANY)
def kth_smallest(x, k, dim=-1, keepdim=False):
    """k counts from 1."""
    dim = int(dim)
    order = order_of(line_of(x), dim, False)
    return _chosen(x, np.take(order, [int(k) - 1], dim), dim, keepdim)


@host_kernel("aten::mode.values", "self:T dim:i? keepdim:b?", dtypes=ANY,
             sizes=lambda x, dim, keepdim: extreme_and_index_sizes(
                 x, -1 if dim is None else dim, keepdim))
def most_frequent(x, dim=-1, keepdim=False):
    """The smallest of equally frequent elements; no NaN is equal to another."""
    dim = int(dim)
    line = np.moveaxis(line_of(x), dim, -1)
    order = order_of(line, -1, False)
    ordered = np.take_along_axis(line, order, -1)
    begins = np.ones(ordered.shape, bool)
    begins[..., 1:] = ordered[..., 1:] != ordered[..., :-1]
    numbers = np.arange(ordered.shape[-1])
    # For each element, how many elements of its run stand before it
    before = numbers - np.maximum.accumulate(np.where(begins, numbers, 0), -1)
    last = before.argmax(-1)[..., None]
    places = np.moveaxis(np.take_along_axis(order, last, -1), -1, dim)
    return _chosen(x, places, dim, keepdim)
