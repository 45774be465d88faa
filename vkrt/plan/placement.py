"""Placements: how each weight gets from the file to where the kernels read it.

* `map`: the kernels read the file's own bytes, through an import of its mapping: no device memory,
  no copy; the pages are the system's cache of the file.
* `direct`: the host reads (and where the layout differs, packs) the bytes straight into the
  weight's final place.
* `staged`: through a staging buffer, from which a shader packs them: for images, and for devices
  with memory of their own.
* `shared`: another method of the program has brought it to the device, in the same layout.
* `stream`: as `direct` or `staged`, but into a place that the weight shares with others over time,
  again in every run (see `vkrt.plan.stream.streaming`).
"""

from __future__ import annotations

from collections.abc import Callable, Container
from dataclasses import dataclass

from vkrt.errors import UnsupportedError
from vkrt.work.command_list import CommandList
from vkrt.work.weights import Weight

KINDS = ("map", "direct", "staged", "shared", "stream")

LIES_AS_READ = "lies in the file as the kernels read it"
SHARED = "another method of the program has it on the device, in the same layout"
SHARED_MEMORY = "the host writes the device's memory"


@dataclass(frozen=True)
class Placement:
    """One of `KINDS`, and why it is that one, in words for the user."""

    kind: str
    why: str


@dataclass(frozen=True)
class Placements:
    """The placement of every weight of a command list, in the order of the file."""

    weight_table: tuple[Weight, ...]
    each: tuple[Placement, ...]

    @classmethod
    def staged(cls, work: CommandList) -> Placements:
        """Every weight through staging."""
        return cls(work.weight_table,
                   (Placement("staged", "nothing else was asked for"),) * len(work.weight_table))

    def weights(self, *kinds: str) -> tuple[Weight, ...]:
        return tuple(weight for weight, placement in zip(self.weight_table, self.each)
                     if placement.kind in kinds)

    def storages(self, *kinds: str) -> frozenset[int]:
        return frozenset(weight.storage for weight in self.weights(*kinds))

    def prepacks(self, *kinds: str) -> tuple[int, ...]:
        return tuple(weight.prepack for weight in self.weights(*kinds))


def placements_of(work: CommandList, weights: str, *, unified: bool,
                  cannot_map: Callable[[Weight], str],
                  shared: Container[int] = ()) -> tuple[Placement, ...]:
    """The placement of each weight of a command list, before any budget.

    Args:
        weights: one of `WEIGHTS`. "auto" maps weights where the memory is shared, and copies the
            rest as little as possible. "map" maps on any device, trusts any driver to read the
            host's memory in every run, and insists that some weight can be mapped. "direct" maps
            nothing; "copy" goes through staging; "stream" is "direct", and the budget says which
            weights are streamed.
        unified: the host sees the device's memory.
        cannot_map: why a weight that lies in the file as the kernels read it cannot be mapped, or
            "".
        shared: ids of the storages that another method of the program has on the device.

    Raises:
        UnsupportedError: with "map", no weight of the method can be mapped.
    """
    found = tuple(Placement("shared", SHARED) if weight.storage in shared else
                  _placement(work, weight, weights, unified, cannot_map)
                  for weight in work.weight_table)
    # A command list without steps has only some of a method's weights.
    if (weights == "map" and found and work.steps
            and not any(p.kind in ("map", "shared") for p in found)):
        reasons = sorted({placement.why for placement in found})
        raise UnsupportedError(f"weights='map': no weight can be mapped ({'; '.join(reasons)})")
    return found


def _placement(work: CommandList, weight: Weight, weights: str, unified: bool,
         cannot_map: Callable[[Weight], str]) -> Placement:
    if weights == "copy":
        return Placement("staged", "weights='copy'")
    why = f"weights={weights!r}"
    if weights == "map" or (weights == "auto" and unified):
        why = _cannot_map(weight) or cannot_map(weight)
        if not why:
            return Placement("map", LIES_AS_READ)
    if weight.layout == "image":
        return Placement("staged", "an image, which only a shader can write")
    if not unified:
        return Placement("staged", "the device has memory of its own")
    record = work.prepacks[weight.prepack]
    if record.constant.dtype != record.target.dtype:
        return Placement("staged", f"{record.constant.dtype} in the file, {record.target.dtype} on "
                                   "the device: a shader converts it")
    return Placement("direct", f"{SHARED_MEMORY}; not mapped: {why}")


def _cannot_map(weight: Weight) -> str:
    if weight.layout == "image":
        return "an image"
    return "" if weight.layout == "file" else "the kernels read it in another order or padding"
