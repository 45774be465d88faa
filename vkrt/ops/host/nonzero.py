"""Host kernels whose data decide how many elements a result has: those that are not zero, those
that a mask chooses, repeated ones.

A `count` is the number that the sizes of the run say. Where the data have another number, the run
has to begin anew: see `vkrt.method.counts`.
"""

from __future__ import annotations

from vkrt.ops.dtypes import ANY, INDEX
from vkrt.ops.host import np
from vkrt.ops.registry import host_kernel
from vkrt.ops.sizes import at_least, broadcast, need_rank
from vkrt.work.limits import CountFound


def places_sizes(x, size, _other):
    return ((at_least(size, 0, "size"), len(x)),)


@host_kernel("aten::nonzero_static.out", "self:T size:i fill_value:i?", sizes=places_sizes,
             dtypes=ANY)
def nonzero_static(x: np.ndarray, size: int, fill: int | None = None) -> np.ndarray:
    """The first `size` places that are not zero, a row of indices for each; rows that are left over
    have the fill value (by default -1)."""
    result = np.full((int(size), x.ndim), -1 if fill is None else fill)
    # A 0-d array has one place, of no indices.
    found = np.argwhere(x)[:int(size)]
    result[:len(found)] = found
    return result


def check_count(number: int, expected: int, found: int) -> None:
    """Raises CountFound where a count is not what the sizes of the run say."""
    if found != expected:
        raise CountFound(number, found)


@host_kernel("aten::nonzero.out", "self:T count:i number:i", sizes=places_sizes, dtypes=ANY)
def nonzero(x: np.ndarray, count: int, number: int) -> np.ndarray:
    """The places of all elements that are not zero, a row of indices for each."""
    places = np.argwhere(x)
    check_count(number, count, len(places))
    return places


@host_kernel("vkrt.mask_places.default", "mask:T.bool count:i number:i", dtypes=INDEX,
             sizes=lambda mask, count, _number: ((at_least(count, 0, "count"),),) * len(mask))
def mask_places(mask: np.ndarray, count: int, number: int) -> tuple[np.ndarray, ...]:
    """The places of all elements that are true, an array of indices for each dimension. A mask
    among indices stands for these arrays."""
    places = np.nonzero(mask)
    check_count(number, count, len(places[0]))
    return places


def selected_sizes(x, mask, count, _number):
    broadcast(x, mask)
    return ((at_least(count, 0, "count"),),)


@host_kernel("aten::masked_select.out", "self:T mask:T.bool count:i number:i",
             sizes=selected_sizes, dtypes=ANY)
def masked_select(x: np.ndarray, mask: np.ndarray, count: int, number: int) -> np.ndarray:
    """All elements of x for which the mask is true; x and the mask are broadcast together."""
    x, mask = np.broadcast_arrays(x, mask)
    check_count(number, count, int(np.count_nonzero(mask)))
    return x[mask]


def repeated_sizes(repeats, count, _number):
    need_rank(repeats, 1, "repeats")
    return ((at_least(count, 0, "output_size"),),)


@host_kernel("aten::repeat_interleave.Tensor_out", "repeats:T.int32 output_size:i number:i?",
             sizes=repeated_sizes, dtypes=ANY)
def repeat_interleave(repeats: np.ndarray, count: int, number: int | None = None) -> np.ndarray:
    """Each number from 0 on, as often as its element of `repeats` says. The program says how many
    these are, or the data do: then it is count `number`."""
    if (repeats < 0).any():
        raise IndexError(f"repeats of {repeats.min()}")
    found = int(repeats.sum())
    if number is not None:
        check_count(number, count, found)
    elif found != count:
        raise IndexError(f"repeats of {found} in all, and an output_size of {count}")
    return np.repeat(np.arange(len(repeats)), repeats)
