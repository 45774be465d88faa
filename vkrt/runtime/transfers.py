"""Transfers: what the reader is to do for a weight that the host writes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from vkrt.memory.packing import Packing
from vkrt.memory.reader import Transfer
from vkrt.work.records import WorkList
from vkrt.work.weights import Weight


def packing_of(work: WorkList, weight: Weight) -> Packing | None:
    """How a weight's bytes are packed; None when its memory has the file's bytes and no others."""
    if weight.layout == "file" and not weight.tail:
        return None
    return Packing.of(work.prepacks[weight.prepack])


def transfer_of(work: WorkList, weight: Weight, address: int) -> Transfer:
    """The transfer that brings a weight from the file to its memory at `address`."""
    return Transfer(weight.source, weight.offset, weight.nbytes, address,
                    packing_of(work, weight), name=weight.name)


def groups_of(transfers: Sequence[Transfer], nbytes: int) -> Iterator[list[Transfer]]:
    """Transfers in their order, in groups of at least so many bytes, but for the last."""
    group: list[Transfer] = []
    left = nbytes
    for transfer in transfers:
        group.append(transfer)
        left -= transfer.nbytes
        if left <= 0:
            yield group
            group, left = [], nbytes
    if group:
        yield group
