"""Transfers: what the reader is to do for a weight that the host writes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from vkrt.errors import FormatError
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
    packing = packing_of(read.copy)
    _check_room(read, read.nbytes if packing is None else packing.target_bytes, room)
    return Transfer(read.source, read.offset, read.nbytes, address, packing, name=read.name)


def piece_transfer(read: WeightRead, piece: UploadPiece, address: int) -> Transfer:
    """The transfer that brings a piece of a weight to a staging buffer, at `address`.

    Raises:
        FormatError: it needs more memory than the piece has there.
    """
    packing = packing_of(read.copy)
    if packing is None:
        _check_room(read, piece.nbytes, piece.target_bytes)
        return Transfer(read.source, piece.offset, piece.nbytes, address, name=read.name)
    row_bytes = packing.target_bytes // packing.rows
    _check_room(read, row_bytes * piece.rows, piece.target_bytes)
    _check_room(read, row_bytes * piece.first_row, piece.target)
    # A packed transfer counts its target from the start of the weight.
    start = address - row_bytes * piece.first_row
    return Transfer(read.source, piece.offset, piece.nbytes, start % 2**64, packing,
                    piece.first_row, piece.rows, read.name)


def _check_room(read: WeightRead, nbytes: int, room: int) -> None:
    if nbytes > room:
        raise FormatError(f"{read.name}: {nbytes:,} bytes of it, expected {room:,} at most")


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
