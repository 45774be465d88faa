"""How many bytes the strips of a region take, worked out once for regions that are alike."""

from __future__ import annotations

import math
from collections.abc import Hashable

from vkrt.passes.liveness import Liveness, padded_bytes
from vkrt.passes.strip_region import Region
from vkrt.work.tensor import Tensor


class StripBytes:
    """The bytes of strips. Networks repeat their layers, so most regions are like an earlier one.

    Args:
        live: of the regions' graph.
    """

    def __init__(self, live: Liveness):
        self._live = live
        self._known: dict[tuple[Hashable, int], int] = {}

    def likeness(self, region: Region) -> Hashable:
        """What the bytes of a region's strips follow from: equal for regions that are alike."""
        numbers: dict[Tensor, int] = {}
        roots: dict[Tensor, int] = {}
        results = set(region.results)

        def of(tensor: Tensor) -> tuple[int, int, int, int]:
            root = self._live.root.get(tensor, tensor)
            return (numbers.setdefault(tensor, len(numbers)), roots.setdefault(root, len(roots)),
                    region.size(tensor), padded_bytes(tensor))

        return (region.least, *((*of(out), out in results, *(
            (*of(tensor), window) for tensor, window in windows.items()))
            for out, windows in region.steps))

    def most(self, region: Region, likeness: Hashable) -> int:
        """The most bytes alive at once in a strip, of the number of strips that the region has."""
        key = likeness, region.count
        if key not in self._known:
            strips = math.ceil(1 / region.share)
            # A strip in the middle keeps rows from earlier strips and for later ones. Of two strips
            # the last one may be empty.
            numbers = (0, 1) if strips < 3 else (strips // 2,)
            self._known[key] = max(_strip_bytes(region, self._live, number) for number in numbers)
        return self._known[key]


def _strip_bytes(region: Region, live: Liveness, number: int) -> int:
    """The most bytes alive at once in a strip, with the rows kept from the strip before."""
    before, done = region.done(number - 1), region.done(number)
    first, later = region.kept(before), region.kept(done)

    def nbytes(tensor: Tensor, count: int) -> int:
        return padded_bytes(tensor) * max(count, 0) // region.size(tensor)

    # The tensor in whose memory the rows of each tensor are. Rows may be written over others, or be
    # a view of them, unless they are joined with kept rows.
    places: dict[Tensor, Tensor] = {}
    until: dict[Tensor, int] = {}
    for index, (out, windows) in zip(region.nodes, region.steps):
        until |= dict.fromkeys((places[tensor] for tensor in windows if tensor in places), index)
        under = [places[tensor] for tensor in windows
                 if tensor in places and live.root[tensor] is live.root[out]]
        places[out] = under[0] if under and first[out] == before[out] else out
    alive: dict[Tensor, int] = {}
    waiting = sum(nbytes(tensor, before[tensor] - first[tensor]) for tensor in before)
    most = 0
    for index, (out, windows) in zip(region.nodes, region.steps):
        place = places[out]
        alive[place] = max(alive.get(place, 0), nbytes(out, done[out] - first[out]))
        # The rows of tensors that exist as a whole are copied.
        parts = sum(nbytes(tensor, (done[out] - before[out]) * region.size(tensor)
                           // region.size(out))
                    for tensor in windows if tensor not in done)
        most = max(most, sum(alive.values()) + waiting + parts)
        waiting += nbytes(out, done[out] - later[out]) - nbytes(out, before[out] - first[out])
        alive = {key: size for key, size in alive.items() if until.get(key, -1) > index}
    return most
