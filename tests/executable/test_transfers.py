"""Weights and pieces of them that need more memory than they have are refused."""

from __future__ import annotations

import pytest

from vkrt.dataclass import replace
from vkrt.errors import FormatError
from vkrt.executable.weights import StridedCopy, UploadPiece, WeightRead
from vkrt.ops.copying import Walk, params
from vkrt.runtime.transfers import piece_transfer, transfer_of
from vkrt.work.tensor import Operand, Storage

# 6 rows of 5 floats become 6 rows of 2 texels.
OPERAND = Operand(Storage(0, "weight", 192, "float32"), (6, 5), "float32", (0, 1))
COPY = StridedCopy(tuple(params(OPERAND, None, Walk((6, 5), (5, 1)))), 4, 6)
PACKED = WeightRead(0, 0, 0, 120, 0, COPY, "w")
PLAIN = WeightRead(0, 0, 0, 192, 0, None, "w")
# Two rows of each
PACKED_PIECE = UploadPiece(2, 2, 40, 40, 64, 64)
PLAIN_PIECE = UploadPiece(0, 0, 64, 64, 64, 64)
ADDRESS = 1 << 20


@pytest.mark.parametrize("read", [PACKED, PLAIN], ids=["packed", "plain"])
def test_a_whole_weight(read):
    transfer_of(read, ADDRESS, 192)
    with pytest.raises(FormatError, match="w: 192 bytes of it, expected 191 at most"):
        transfer_of(read, ADDRESS, 191)


@pytest.mark.parametrize("read, piece", [(PACKED, PACKED_PIECE), (PLAIN, PLAIN_PIECE)],
                         ids=["packed", "plain"])
def test_a_piece(read, piece):
    piece_transfer(read, piece, ADDRESS)
    with pytest.raises(FormatError, match="w: 64 bytes of it, expected 63 at most"):
        piece_transfer(read, replace(piece, target_bytes=63), ADDRESS)


def test_rows_that_come_before_their_place():
    with pytest.raises(FormatError, match="w: 96 bytes of it, expected 64 at most"):
        piece_transfer(PACKED, replace(PACKED_PIECE, first_row=3), ADDRESS)
