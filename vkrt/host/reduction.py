"""Host kernels along dimensions: running sums and products, order, the largest few.

Floats are summed in float64, as torch does on the CPU. NaN is greater than every number.
"""

from __future__ import annotations

import numpy as np

from vkrt.host.kernels import kernel


def _wide(x: np.ndarray) -> type:
    """The dtype in which sums and products of an array are kept."""
    return np.float64 if x.dtype.kind == "f" else np.int64


def _line(x: np.ndarray) -> np.ndarray:
    """To torch a 0-d tensor has one dimension."""
    return x.reshape(1) if x.ndim == 0 else x


@kernel("aten::cumsum.out")
def running_sum(x, dim, _dtype=None):
    return np.cumsum(_line(x), int(dim), dtype=_wide(x)).reshape(x.shape)


@kernel("aten::cumprod.out")
def running_product(x, dim, _dtype=None):
    return np.cumprod(_line(x), int(dim), dtype=_wide(x)).reshape(x.shape)


def _order(x: np.ndarray, dim: int, descending: bool) -> np.ndarray:
    """Indices that sort; equal elements stay in their order."""
    if not descending:
        return np.argsort(x, dim, kind="stable")
    turned = np.argsort(np.flip(x, dim), dim, kind="stable")
    return x.shape[dim] - 1 - np.flip(turned, dim)


@kernel("aten::sort.values")
def sort(x, dim=-1, descending=False):
    line = _line(x)
    order = _order(line, int(dim), bool(descending))
    return np.take_along_axis(line, order, int(dim)).reshape(x.shape), order.reshape(x.shape)


@kernel("aten::sort.values_stable")
def sort_stable(x, _stable=None, dim=-1, descending=False):
    return sort(x, dim, descending)


@kernel("aten::topk.values")
def topk(x, k, dim=-1, largest=True, _sorted=True):
    line, dim = _line(x), int(dim)
    order = np.take(_order(line, dim, bool(largest)), range(int(k)), dim)
    values = np.take_along_axis(line, order, dim)
    return (values.reshape(()), order.reshape(())) if x.ndim == 0 else (values, order)
