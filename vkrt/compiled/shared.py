"""Shared weights: several methods of a compiled program read them, and the device has them once.

There is one group of weights for each set of methods that read the same weights, so a load of one
method brings no weights that only others read. Pure: nothing here knows a device or a file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from vkrt.executable.program import SharedUse
from vkrt.plan.contents import contents_of
from vkrt.work.command_list import CommandList
from vkrt.work.records import Prepack


@dataclass(frozen=True)
class SharedWeights:
    """Weights that the same methods read.

    Attributes:
        work: has these weights and nothing else.
        storages: by the number of each method that reads them, their storages in that method, in
            the order of the storages of `work`.
    """

    work: CommandList
    storages: Mapping[int, tuple[int, ...]]


def shared_weights(works: Sequence[CommandList], copied: Sequence[Sequence[int]],
                   ) -> list[SharedWeights]:
    """The weights that several methods read, in groups by the methods that read them.

    Args:
        works: of the methods, with constants in one file.
        copied: for each of them the ids of the storages of weights that take device memory, in the
            order of the file.
    """
    # A method may have a weight twice: its second one corresponds to the second one of others.
    places: dict[tuple[str, int], dict[int, int]] = {}
    for number, (work, storages) in enumerate(zip(works, copied)):
        contents, times = contents_of(work), Counter[str]()
        for storage in storages:
            content = contents[storage]
            places.setdefault((content, times[content]), {})[number] = storage
            times[content] += 1
    together: dict[tuple[int, ...], list[dict[int, int]]] = {}
    for place in places.values():
        if len(place) > 1:
            together.setdefault(tuple(place), []).append(place)
    found = []
    for methods, weights in together.items():
        numbers = {method: tuple(place[method] for place in weights) for method in methods}
        found.append(SharedWeights(_alone(works[methods[0]], numbers[methods[0]]), numbers))
    return found


def uses_of(method: int, shared: Sequence[SharedWeights]) -> tuple[SharedUse, ...]:
    return tuple(SharedUse(number, one.storages[method]) for number, one in enumerate(shared)
                 if method in one.storages)


def _alone(work: CommandList, storages: Sequence[int]) -> CommandList:
    """Some weights of a command list, with their storages numbered anew."""
    made = {old: work.storages[old]._replace(id=new) for new, old in enumerate(storages)}

    def moved(record: Prepack) -> Prepack:
        return replace(record, target=replace(record.target,
                                              storage=made[record.target.storage.id]))

    return CommandList(
        storages=tuple(made.values()), storage=work.storage, target=work.target,
        prepacks=tuple(moved(p) for p in work.prepacks if p.target.storage.id in made))
