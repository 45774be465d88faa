"""Transfers: what the reader is to do for a weight that the host writes."""

from __future__ import annotations

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
