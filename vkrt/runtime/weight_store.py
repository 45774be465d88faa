"""Weights that several methods of a program read: on the device once, as long as one is loaded.

A method finds here the weights that earlier methods loaded from the same bytes in the same layout,
and offers its own. Mapped weights take no device memory, so each method maps for itself. Nothing is
shared with streaming, where weights are on the device only while a run needs them, nor with a
memory budget, which is planned for each method by itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from vkrt.executable.weights import WeightPlan
from vkrt.runtime.weights import Weights


@dataclass(frozen=True)
class SharedWeights:
    """Weights that a method need not load, because other methods have loaded them.

    Attributes:
        places: (the `Weights` that have it, storage there) by the id of the storage here.
        owners: the `Weights` that have them; retained.
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
        """Lets other methods use the weights that a method has loaded.

        Args:
            plan: of these weights, from before they were loaded.
        """
        kept = {place.storage for block in plan.blocks if block.kind == "weight"
                for place in block.places}
        for storage, content in zip(plan.weights, plan.contents):
            if storage in kept:
                self._known.setdefault(content, (weights, storage))
