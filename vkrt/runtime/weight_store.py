"""Weights that several methods of a program read: on the device once, as long as one is loaded.

A method finds here what those loaded before it have brought to the device from the same bytes and
in the same layout, and offers what it brings itself. What is mapped takes no device memory, so each
method maps for itself; what is streamed is on the device only while a run of its method needs it,
and a memory budget is planned for each method by itself: with either of them nothing is shared.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from vkrt.executable.weights import WeightPlan
from vkrt.runtime.weights import Weights


@dataclass(frozen=True)
class SharedWeights:
    """What a method need not bring to the device, because other methods have.

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
        self._known: dict[str, tuple[Weights, int]] = {}

    def find(self, contents: Mapping[int, str]) -> SharedWeights:
        """The weights that are on the device already; the caller closes them.

        Args:
            contents: what each is made of, by the id of its storage (`WeightPlan.contents`).
        """
        self._known = {key: known for key, known in self._known.items() if not known[0].closed}
        places = {storage: self._known[key] for storage, key in contents.items()
                  if key in self._known}
        owners = tuple(dict.fromkeys(weights for weights, _ in places.values()))
        for weights in owners:
            weights.retain()
        return SharedWeights(places, owners)

    def offer(self, weights: Weights, plan: WeightPlan) -> None:
        """Lets others use the weights that a method has brought to the device.

        Args:
            plan: of these weights, from before they were brought there.
        """
        kept = {place.storage for block in plan.blocks if block.kind == "weight"
                for place in block.places}
        for storage, content in zip(plan.weights, plan.contents):
            if storage in kept:
                self._known.setdefault(content, (weights, storage))
