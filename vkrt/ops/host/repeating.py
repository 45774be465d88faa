"""Host kernels of elements that are repeated as often as another tensor says."""

from __future__ import annotations

from vkrt.ops.dtypes import ANY
from vkrt.ops.host import np
from vkrt.ops.host.nonzero import check_count
from vkrt.ops.registry import host_kernel
from vkrt.ops.sizes import at_least, need_rank


def repeated_sizes(repeats, count, _number):
    need_rank(repeats, 1, "repeats")
    return ((at_least(count, 0, "output_size"),),)


@host_kernel("aten::repeat_interleave.Tensor_out", "repeats:T.int32 output_size:i number:i?",
             sizes=repeated_sizes, dtypes=ANY)
def repeat_interleave(repeats: np.ndarray, count: int, number: int | None = None) -> np.ndarray:
    """Each number from 0 on, as often as its element of `repeats` says. The program says how many
    these are, or the data do: then it is count `number` (see `vkrt.ops.host.nonzero`)."""
    if (repeats < 0).any():
        raise IndexError(f"repeats of {repeats.min()}")
    found = int(repeats.sum())
    if number is not None:
        check_count(number, count, found)
    elif found != count:
        raise IndexError(f"repeats of {found} in all, and an output_size of {count}")
    return np.repeat(np.arange(len(repeats)), repeats)
