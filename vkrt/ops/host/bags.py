"""Host kernels of sums, means and largest elements of bags of a table's rows."""

from __future__ import annotations

from vkrt.ops.dtypes import ANY
from vkrt.ops.host import np
from vkrt.ops.registry import host_kernel
from vkrt.ops.sizes import fail, need_rank, need_sizes

SUM, MEAN, LARGEST = range(3)

_BAGS = ("weight:T indices:T.int32 offsets:T.int32 scale_grad_by_freq:- mode:i? sparse:- "
         "per_sample_weights:T? include_last_offset:b? padding_idx:i?")


def _tells_bags(mode: int, padding: int) -> bool:
    """Whether torch gives the bag of each index, as it does not for plain sums."""
    return mode != SUM or padding >= 0


def bag_sizes(weight, indices, offsets, mode, factors, include_last, padding):
    need_rank(weight, 2, "weight")
    need_rank(indices, 1, "indices")
    need_rank(offsets, 1, "offsets")
    mode = mode or SUM
    if mode not in (SUM, MEAN, LARGEST):
        fail("mode", f"expected 0, 1 or 2, got {mode}")
    if factors is not None and mode != SUM:
        fail("per_sample_weights", "only sums have them")
    need_sizes(factors, indices, "per_sample_weights")
    if include_last and not offsets[0]:
        fail("offsets", "expected the end of the last bag")
    bags = offsets[0] - bool(include_last)
    tells = _tells_bags(mode, -1 if padding is None else padding)
    return ((bags, weight[1]), indices if tells else (0,), offsets,
            (bags, weight[1]) if mode == LARGEST else (bags,))


@host_kernel("aten::_embedding_bag_forward_only.out", _BAGS, sizes=bag_sizes, dtypes=ANY)
def embedding_bag(weight, indices, offsets, _by_frequency=None, mode=0, _sparse=None, factors=None,
                  include_last=False, padding=-1):
    """Every bag is the rows from its offset up to that of the next bag; a bag without rows is 0.
    The bag of each index is only given where torch gives it. Of equal largest elements the row of
    the first one is given."""
    if indices.size and indices.min() < 0:
        raise IndexError(f"index {indices.min()} is out of bounds for {len(weight)} rows")
    ends = np.append(offsets[1:], [] if include_last else indices.size).astype(np.int64)
    starts = offsets[:ends.size]
    if (starts > ends).any() or (ends > indices.size).any() or (starts < 0).any():
        raise IndexError(f"offsets {offsets.tolist()} of {indices.size} indices do not ascend")
    sums = np.zeros((ends.size, weight.shape[1]))
    largest = np.zeros(sums.shape if mode == LARGEST else ends.size, np.int64)
    counts = np.zeros(offsets.size, np.int64)
    for bag, (start, end) in enumerate(zip(starts, ends, strict=True)):
        kept = (indices[start:end] != padding) | (padding < 0)
        own = indices[start:end][kept]
        rows, counts[bag] = weight[own].astype(np.float64), own.size
        if factors is not None:
            rows *= factors[start:end][kept, None]
        if mode != LARGEST:
            sums[bag] = rows.sum(0) / (max(own.size, 1) if mode == MEAN else 1)
        elif own.size:
            places = rows.argmax(0)
            sums[bag], largest[bag] = rows.max(0), own[places]
    bags = np.repeat(np.arange(ends.size), ends - starts)
    return sums, bags if _tells_bags(mode, padding) else (), counts, largest
