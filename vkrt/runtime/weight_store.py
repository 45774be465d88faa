"""Weights that several methods of a program read: on the device once, as long as one is loaded.

A method finds here what those loaded before it have brought to the device from the same bytes and
in the same layout, and offers what it brings itself. What is mapped takes no device memory, so each
method maps for itself; what is streamed is on the device only while a run of its method needs it,
and a memory budget is planned for each method by itself: with either of them nothing is shared.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping

from vkrt.dataclass import dataclass, field
from vkrt.plan.memory_plan import MemoryPlan
from vkrt.runtime.weights import Weights
from vkrt.work.records import Prepack, WorkList

# Placements of weights that stay on the device
KEPT = ("direct", "staged")


@dataclass(frozen=True)
class SharedWeights:
    """What a work list need not bring to the device, because other methods have.

    Attributes:
        places: (whose weights, storage there) by the id of the storage here.
        owners: those whose weights they are; retained.
    """

    places: Mapping[int, tuple[Weights, int]] = field(default_factory=dict)
    owners: tuple[Weights, ...] = ()

    def close(self) -> None:
        """Ends their use; to be called once."""
        for weights in self.owners:
            weights.close()


class WeightStore:
    """The weights of a program's methods, by what they are made of. One thread at a time."""

    def __init__(self) -> None:
        self._known: dict[Hashable, tuple[Weights, int]] = {}

    def find(self, work: WorkList) -> SharedWeights:
        """The weights of a work list that are on the device already; the caller closes them."""
        self._known = {key: known for key, known in self._known.items() if not known[0].closed}
        places = {storage: self._known[key] for storage, key in _keys(work).items()
                  if key in self._known}
        owners = tuple(dict.fromkeys(weights for weights, _ in places.values()))
        for weights in owners:
            weights.retain()
        return SharedWeights(places, owners)

    def offer(self, weights: Weights, work: WorkList, plan: MemoryPlan) -> None:
        """Lets others use the weights that a method has brought to the device.

        Args:
            work, plan: what they were loaded for.
        """
        kept = plan.placements.storages(*KEPT)
        for storage, key in _keys(work).items():
            if storage in kept:
                self._known.setdefault(key, (weights, storage))


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
