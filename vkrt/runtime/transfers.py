"""Transfers: what the reader is to do for a weight that the host writes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from vkrt.executable.weights import StridedCopy, UploadPiece, WeightRead
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


def piece_transfer(read: WeightRead, piece: UploadPiece, address: int) -> Transfer:
    """The transfer that brings a piece of a weight to a staging buffer, at `address`.

    Raises:
        FormatError: it needs more memory than the piece has there.
    """
    return Transfer(read.source, piece.offset, piece.nbytes, address, packing_of(read.copy),
                    piece.first_row, piece.rows, read.name, piece.target_bytes, piece.target)


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
