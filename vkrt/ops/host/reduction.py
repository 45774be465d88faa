"""Host kernels along dimensions that are too long for the device: running sums and products, order.

Floats are summed in float64, as torch does on the CPU. NaN is greater than every number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from vkrt.ops.dtypes import ANY
from vkrt.ops.ordering import sort_sizes, topk_sizes
from vkrt.ops.registry import host_kernel
from vkrt.ops.scan import running_sizes
from vkrt.ops.sizes import need_rank

if TYPE_CHECKING:
    import numpy as np


def _wide(x: np.ndarray) -> type:
    """The dtype in which sums and products of an array are kept."""
    import numpy as np

    return np.float64 if x.dtype.kind == "f" else np.int64


def _line(x: np.ndarray) -> np.ndarray:
    """To torch a 0-d tensor has one dimension."""
    return x.reshape(1) if x.ndim == 0 else x


@host_kernel("aten::cumsum.out", "self:T dim:i dtype:-", sizes=running_sizes, dtypes=ANY)
def running_sum(x, dim, _dtype=None):
    import numpy as np

    return np.cumsum(_line(x), int(dim), dtype=_wide(x)).reshape(x.shape)


@host_kernel("aten::cumprod.out", "self:T dim:i dtype:-", sizes=running_sizes, dtypes=ANY)
def running_product(x, dim, _dtype=None):
    import numpy as np

    return np.cumprod(_line(x), int(dim), dtype=_wide(x)).reshape(x.shape)


def _order(x: np.ndarray, dim: int, descending: bool) -> np.ndarray:
    """Indices that sort; equal elements stay in their order."""
    import numpy as np

    if not descending:
        return np.argsort(x, dim, kind="stable")
    turned = np.argsort(np.flip(x, dim), dim, kind="stable")
    return x.shape[dim] - 1 - np.flip(turned, dim)


@host_kernel("aten::sort.values", "self:T dim:i? descending:b?", sizes=sort_sizes, dtypes=ANY)
def sort(x, dim=-1, descending=False):
    import numpy as np

    line = _line(x)
    order = _order(line, int(dim), bool(descending))
    return np.take_along_axis(line, order, int(dim)).reshape(x.shape), order.reshape(x.shape)


@host_kernel("aten::sort.values_stable", "self:T stable:- dim:i? descending:b?",
             sizes=sort_sizes, dtypes=ANY)
def sort_stable(x, _stable=None, dim=-1, descending=False):
    return sort(x, dim, descending)


@host_kernel("aten::topk.values", "self:T k:i dim:i? largest:b? sorted:b?",
             sizes=topk_sizes, dtypes=ANY)
def topk(x, k, dim=-1, largest=True, _sorted=True):
    import numpy as np

    line, dim = _line(x), int(dim)
    order = np.take(_order(line, dim, bool(largest)), range(int(k)), dim)
    values = np.take_along_axis(line, order, dim)
    return (values.reshape(()), order.reshape(())) if x.ndim == 0 else (values, order)


@host_kernel("aten::logcumsumexp.out", "self:T dim:i", sizes=running_sizes, dtypes=ANY)
def running_log_sum(x, dim):
    """log of the running sum of exponentials."""
    import numpy as np

    return np.logaddexp.accumulate(_line(x).astype(np.float64), int(dim)).reshape(x.shape)


def bucket_sizes(x, boundaries, *_how):
    need_rank(boundaries, 1, "boundaries")
    return (x,)


@host_kernel("aten::bucketize.Tensor_out", "self:T boundaries:T out_int32:b? right:b?",
             sizes=bucket_sizes, dtypes=ANY)
def bucketize(x, boundaries, _out_int32=False, right=False):
    """How many boundaries, in ascending order, lie before each element."""
    import numpy as np

    return np.searchsorted(boundaries, x, "right" if right else "left")
