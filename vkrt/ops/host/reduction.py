"""Host kernels along dimensions: running sums, products and extremes, order.

Floats are summed in float64, as torch does on the CPU. NaN is greater than every number.
"""

from __future__ import annotations

from vkrt.ops.dtypes import ANY
from vkrt.ops.host import np
from vkrt.ops.registry import host_kernel
from vkrt.ops.scan import running_sizes
from vkrt.ops.sort import sort_sizes, topk_sizes


def _wide(x: np.ndarray) -> type:
    """The dtype in which sums and products of an array are kept."""
    return np.float64 if x.dtype.kind == "f" else np.int64


def line_of(x: np.ndarray) -> np.ndarray:
    """The array, a 0-d one as 1-d: to torch a 0-d tensor has one dimension."""
    return x.reshape(1) if x.ndim == 0 else x


@host_kernel("aten::cumsum.out", "self:T dim:i dtype:-", sizes=running_sizes, dtypes=ANY)
def running_sum(x, dim, _dtype=None):
    return np.cumsum(line_of(x), int(dim), dtype=_wide(x)).reshape(x.shape)


@host_kernel("aten::cumprod.out", "self:T dim:i dtype:-", sizes=running_sizes, dtypes=ANY)
def running_product(x, dim, _dtype=None):
    return np.cumprod(line_of(x), int(dim), dtype=_wide(x)).reshape(x.shape)


def order_of(x: np.ndarray, dim: int, descending: bool) -> np.ndarray:
    """Indices that sort; equal elements stay in their order."""
    if not descending:
        return np.argsort(x, dim, kind="stable")
    turned = np.argsort(np.flip(x, dim), dim, kind="stable")
    return x.shape[dim] - 1 - np.flip(turned, dim)


@host_kernel("aten::sort.values", "self:T dim:i? descending:b?", sizes=sort_sizes, dtypes=ANY)
def sort(x, dim=-1, descending=False):
    line = line_of(x)
    order = order_of(line, int(dim), bool(descending))
    return np.take_along_axis(line, order, int(dim)).reshape(x.shape), order.reshape(x.shape)


@host_kernel("aten::sort.values_stable", "self:T stable:- dim:i? descending:b?",
             sizes=sort_sizes, dtypes=ANY)
def sort_stable(x, _stable=None, dim=-1, descending=False):
    return sort(x, dim, descending)


@host_kernel("aten::topk.values", "self:T k:i dim:i? largest:b? sorted:b?",
             sizes=topk_sizes, dtypes=ANY)
def topk(x, k, dim=-1, largest=True, _sorted=True):
    line, dim = line_of(x), int(dim)
    order = np.take(order_of(line, dim, bool(largest)), range(int(k)), dim)
    values = np.take_along_axis(line, order, dim)
    return (values.reshape(()), order.reshape(())) if x.ndim == 0 else (values, order)


@host_kernel("aten::logcumsumexp.out", "self:T dim:i", sizes=running_sizes, dtypes=ANY)
def running_log_sum(x, dim):
    """log of the running sum of exponentials."""
    return np.logaddexp.accumulate(line_of(x).astype(np.float64), int(dim)).reshape(x.shape)


def extreme_so_far_sizes(x, dim):
    return running_sizes(x, dim) * 2


def _extreme_so_far(x: np.ndarray, dim: int, extreme: np.ufunc) -> tuple[np.ndarray, np.ndarray]:
    """The running extreme and where it is: of equal elements, or after a NaN, the last one."""
    line = np.moveaxis(line_of(x), dim, -1)
    is_extreme = (line == extreme.accumulate(line, -1)) | (line != line)
    places = np.maximum.accumulate(np.where(is_extreme, np.arange(line.shape[-1]), 0), -1)
    values = np.take_along_axis(line, places, -1)
    values, places = np.moveaxis(values, -1, dim), np.moveaxis(places, -1, dim)
    return values.reshape(x.shape), places.reshape(x.shape)


@host_kernel("aten::cummax.out", "self:T dim:i", sizes=extreme_so_far_sizes, dtypes=ANY)
def running_maximum(x, dim):
    return _extreme_so_far(x, int(dim), np.maximum)


@host_kernel("aten::cummin.out", "self:T dim:i", sizes=extreme_so_far_sizes, dtypes=ANY)
def running_minimum(x, dim):
    return _extreme_so_far(x, int(dim), np.minimum)
