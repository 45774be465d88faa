"""Transfers: what the reader is to do for a weight that the host writes."""

from __future__ import annotations

from vkrt.executable.weights import StridedCopy, WeightRead
from vkrt.memory.packing import Packing
from vkrt.memory.reader import Transfer


def packing_of(copy: StridedCopy | None) -> Packing | None:
    """How the host packs a weight; None when its memory has the file's bytes and no others."""
    return None if copy is None else Packing(copy.params, copy.itemsize, copy.rows)


def transfer_of(read: WeightRead, address: int, room: int) -> Transfer:
    """The transfer that brings a weight from the file to its memory of `room` bytes at `address`.

    Raises:
        FormatError: it needs more memory.
    """
    return Transfer(read.source, read.offset, read.nbytes, address, packing_of(read.copy),
                    name=read.name, room=room)
