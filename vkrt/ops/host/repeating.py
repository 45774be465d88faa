"""Host kernels of elements that are repeated as often as another tensor says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vkrt.ops.dtypes import ANY
from vkrt.ops.registry import host_kernel
from vkrt.ops.sizes import need_rank, unsupported

if TYPE_CHECKING:
    import numpy as np


def repeated_sizes(repeats, count):
    need_rank(repeats, 1, "repeats")
    if count is None:
        unsupported("output_size", "the size of the result depends on the data without it: export "
                    "torch.repeat_interleave(.., output_size=N)")
    return ((count,),)


@host_kernel("aten::repeat_interleave.Tensor_out", "repeats:T.int32 output_size:i?",
             sizes=repeated_sizes, dtypes=ANY)
def repeat_interleave(repeats: np.ndarray, count: int) -> np.ndarray:
    """Each number from 0 on as often as its element says."""
    import numpy as np

    if (repeats < 0).any():
        raise IndexError(f"repeats of {repeats.min()}")
    if repeats.sum() != count:
        raise IndexError(f"repeats of {repeats.sum()} in all, and an output_size of {count}")
    return np.repeat(np.arange(len(repeats)), repeats)
