"""How many scores of attention are in memory at the same time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from vkrt.work.target import Target
from vkrt.work.tensor import itemsize, round_up

# Bytes of the scores of a block, unless the rows below need more; the smaller number where memory
# is preferred to speed.
SCORE_BYTES, LEAST_BYTES = 1 << 20, 1 << 18

# Rows of a block that is as fast as one of more rows; the smaller number, hardly slower, where
# memory is preferred. On lavapipe 22.3.6 blocks of 128 rows take 1.12 of the CPU time of 256 rows
# over 8,192 keys; over 4,096 keys, blocks of 64 rows take 1.06 of it and blocks of 32 rows 1.47.
ROWS, LEAST_ROWS = 256, 64

# A number of rows that all tiles of products divide
TILE = 32

# Elements of a product that a lane makes with the smaller tiles that workgroups share
EACH = 16


@dataclass(frozen=True)
class Blocks:
    """How many heads, or how many rows of one head, have their scores at the same time."""

    heads: int
    rows: int


def blocks_for(target: Target, dtype: str, sizes: Sequence[int], width: int) -> Blocks | None:
    """The blocks of scores [heads, rows, keys] for values of `width` elements. None where all
    scores are done at once: where they have few bytes, and in images, which have no views of parts
    of tensors."""
    heads, rows, keys = sizes
    if target.storage == "texture3d" or rows < 2:
        return None
    line = itemsize(dtype) * 4 * -(-keys // 4)
    most = score_bytes(target, line, width)
    if heads * rows * line <= most:
        return None
    if rows * line <= most:
        return Blocks(most // (rows * line), rows)
    count = max(most // line, 2)
    each = round_up(-(-rows // -(-rows // count)), TILE)
    return Blocks(1, each if each <= count else count)


def score_bytes(target: Target, line: int, width: int) -> int:
    """How many bytes the scores of a block may have, of which a row takes `line`."""
    if target.prefer == "memory":
        return min(max(LEAST_BYTES, line * LEAST_ROWS), target.max_buffer_range)
    rows = ROWS
    if target.tuning.shares:
        # As many as it takes for all lanes to have a part in the product with the values.
        rows = max(rows, EACH * target.tuning.lanes // max(width, 1))
    return min(max(SCORE_BYTES, line * rows), target.max_buffer_range)
