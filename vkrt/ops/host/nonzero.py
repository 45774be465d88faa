"""Host kernels of the places of elements that are not zero: as many as a program has room for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vkrt.ops.dtypes import ANY
from vkrt.ops.registry import host_kernel
from vkrt.ops.sizes import at_least

if TYPE_CHECKING:
    import numpy as np


def places_sizes(x, size, _fill):
    return ((at_least(size, 0, "size"), len(x)),)


@host_kernel("aten::nonzero_static.out", "self:T size:i fill_value:i?", sizes=places_sizes,
             dtypes=ANY)
def nonzero_static(x: np.ndarray, size: int, fill: int | None = None) -> np.ndarray:
    """The first `size` places, a row of indices for each; rows that are left have the fill value
    (-1)."""
    import numpy as np

    result = np.full((int(size), x.ndim), -1 if fill is None else fill)
    # A 0-d array has one place, of no indices.
    found = np.argwhere(x)[:int(size)]
    result[:len(found)] = found
    return result
