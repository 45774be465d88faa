"""Weights that several methods of a program read: on the device once, as long as one is loaded.

A method finds here what those loaded before it have brought to the device from the same bytes and
in the same layout, and offers what it brings itself. What is mapped takes no device memory, so each
method maps for itself; what is streamed is on the device only while a run of its method needs it,
and a memory budget is planned for each method by itself: with either of them nothing is shared.
"""

from __future__ import annotations

from collections.abc import Hashable

from vkrt.dataclass import dataclass
from vkrt.plan.plan import MemoryPlan
from vkrt.runtime.weights import Weights
from vkrt.work.records import Prepack, WorkList

# Ways of weights that stay on the device
KEPT = ("direct", "staged")


@dataclass(frozen=True)
class Found:
    """What a work list need not bring to the device.

    Attributes:
        places: (whose weights, storage there) by the id of the storage here.
        lenders: those whose weights are used; retained, to be closed by the one that asked.
    """

    places: dict[int, tuple[Weights, int]]
    lenders: tuple[Weights, ...]


class WeightStore:
    """The weights of a program's methods, by what they are made of. One thread at a time."""

    def __init__(self) -> None:
        self._held: dict[Hashable, tuple[Weights, int]] = {}

    def find(self, work: WorkList) -> Found:
        """The weights of a work list that are on the device already."""
        self._held = {key: held for key, held in self._held.items() if not held[0].closed}
        places = {storage: self._held[key] for storage, key in _keys(work).items()
                  if key in self._held}
        lenders = tuple(dict.fromkeys(weights for weights, _ in places.values()))
        for weights in lenders:
            weights.retain()
        return Found(places, lenders)

    def offer(self, weights: Weights, work: WorkList, plan: MemoryPlan) -> None:
        """Lets others use the weights that a method has brought to the device.

        Args:
            work, plan: what they were loaded for.
        """
        kept = plan.placement.storages(*KEPT)
        for storage, key in _keys(work).items():
            if storage in kept:
                self._held.setdefault(key, (weights, storage))


def _keys(work: WorkList) -> dict[int, Hashable]:
    """For each storage of weights everything that decides its bytes, and how it is read."""
    keys: dict[int, tuple[Hashable, ...]] = {}
    for record in work.prepacks:
        storage = record.target.storage
        if storage.id not in keys:
            keys[storage.id] = storage.nbytes, storage.extents, storage.dtype
        keys[storage.id] += (_content(record),)
    return dict(keys)


def _content(record: Prepack) -> Hashable:
    constant, target = record.constant, record.target
    where = constant.key or (constant.source, constant.offset)
    return (where, constant.nbytes, constant.dtype, target.dtype, target.offset, record.shader,
            record.params)
