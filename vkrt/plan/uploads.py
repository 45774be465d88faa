"""Uploads: how a streamed weight passes through staging, on devices with memory of their own. The
host reads and packs a piece into one of two slots of a staging buffer, while the device copies the
piece in the other slot to its place in the pool."""

from __future__ import annotations

from collections.abc import Iterable

from vkrt.executable.weights import UploadPiece
from vkrt.plan.memory_plan import STAGING_ALIGNMENT
from vkrt.work.command_list import CommandList
from vkrt.work.tensor import round_up
from vkrt.work.weights import Weight

# Pieces are at most this large where rows allow it. A slot is as large as the largest piece.
PIECE_BYTES = 1 << 20


def pieces_of(work: CommandList, weight: Weight) -> tuple[UploadPiece, ...]:
    record = work.prepacks[weight.prepack]
    size = record.target.nbytes
    if weight.layout == "file" and not weight.tail:
        cuts = [(start, min(PIECE_BYTES, weight.nbytes - start))
                for start in range(0, weight.nbytes, PIECE_BYTES)]
        return tuple(UploadPiece(0, 0, weight.offset + start, nbytes, start, nbytes)
                     for start, nbytes in cuts)
    row_bytes = size // record.rows
    step = max(PIECE_BYTES // row_bytes, 1)
    pieces = []
    for first in range(0, record.rows, step):
        rows = min(step, record.rows - first)
        start = first * record.row_bytes
        pieces.append(UploadPiece(first, rows, weight.offset + start,
                            min(rows * record.row_bytes, weight.nbytes - start),
                            first * row_bytes, rows * row_bytes))
    return tuple(pieces)


def slot_bytes(work: CommandList, weights: Iterable[Weight]) -> int:
    """Bytes of a slot through which these weights can pass."""
    return max((round_up(piece.target_bytes, STAGING_ALIGNMENT)
                for weight in weights for piece in pieces_of(work, weight)), default=0)
