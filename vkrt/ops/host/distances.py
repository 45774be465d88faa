"""Host kernels of distances between the rows of matrices, of masked scatter and of dropout."""

from __future__ import annotations

import math

from vkrt.ops.dtypes import ANY
from vkrt.ops.host import np
from vkrt.ops.registry import host_kernel
from vkrt.ops.sizes import broadcast, fail, need_broadcast, need_rank, unsupported


def _distance(away: np.ndarray, order: float) -> np.ndarray:
    """The norm over the last dimension, summed in float64."""
    away = np.abs(away.astype(np.float64))
    if order == 0:
        return (away != 0).sum(-1)
    if math.isinf(order):
        return away.max(-1, initial=0)
    return (away ** order).sum(-1) ** (1 / order)


def _need_order(order: float) -> None:
    if not order >= 0:
        fail("p", f"expected a number of at least 0, got {order}")


def pair_sizes(x, y, order, _mode):
    if len(x) < 2 or len(y) < 2 or x[-1] != y[-1]:
        fail("x2", f"expected rows as long as those of {list(x)}, got sizes {list(y)}")
    _need_order(order)
    return ((*broadcast(x[:-2], y[:-2]), x[-2], y[-2]),)


@host_kernel("aten::_cdist_forward.out", "x1:T x2:T p:f compute_mode:i?", sizes=pair_sizes,
             dtypes=ANY)
def distances_of_pairs(x, y, order, _mode=None):
    return _distance(x[..., :, None, :] - y[..., None, :, :], order)


def apart_sizes(x, y, order):
    broadcast(x, y)
    _need_order(2.0 if order is None else order)
    return ((),)


@host_kernel("aten::dist.out", "self:T other:T p:f?", sizes=apart_sizes, dtypes=ANY)
def distance(x, y, order=2.0):
    """The norm of a difference, of all elements together."""
    return _distance((x - y).reshape(-1), order)


def row_sizes(x, order):
    need_rank(x, 2, "self")
    _need_order(2.0 if order is None else order)
    return ((x[0] * (x[0] - 1) // 2,),)


@host_kernel("aten::_pdist_forward.out", "self:T p:f?", sizes=row_sizes, dtypes=ANY)
def distances_of_rows(x, order=2.0):
    first, second = np.triu_indices(len(x), 1)
    return _distance(x[first] - x[second], order)


def scattered_sizes(x, mask, _source):
    need_broadcast(mask, broadcast(x, mask), "mask")
    return (broadcast(x, mask),)


@host_kernel("aten::masked_scatter.out", "self:T mask:T.bool source:T", sizes=scattered_sizes,
             dtypes=ANY, broadcasts="self mask")
def masked_scatter(x, mask, source):
    """The elements of the source, one after the other, where the mask is true."""
    sizes = np.broadcast_shapes(x.shape, mask.shape)
    result, mask = np.broadcast_to(x, sizes).copy(), np.broadcast_to(mask, sizes)
    count = int(mask.sum())
    if count > source.size:
        raise IndexError(f"{count} elements are true in the mask, the source has {source.size}")
    result[mask] = source.reshape(-1)[:count]
    return result


def dropped_sizes(x, _probability, train):
    if train is not False:
        unsupported("train", "dropout in training; export the model in eval mode")
    return x, x


@host_kernel("aten::native_dropout.out", "input:T p:f train:b?", sizes=dropped_sizes, dtypes=ANY)
def not_dropped(x, _probability, _train=None):
    return x, np.ones(x.shape, bool)
