"""Register tiles: how much of a result one invocation computes.

A larger tile reuses each loaded texel more often, but leaves fewer invocations and wastes more of
the last tile. How fast each is on full tiles was measured for every driver (`Tuning.tiles`).
"""

from __future__ import annotations

from collections.abc import Collection

from vkrt.work.tuning import Tile, Tuning


def invocations(tile: Tile, width: int, channels: int, count: int = 1) -> int:
    """Invocations for `count` rows of `width` pixels with so many channels."""
    return -(-width // tile[0]) * -(-channels // tile[1]) * count


def choose(tuning: Tuning, width: int, channels: int, count: int = 1, minimum: int = 1,
           allowed: Collection[Tile] | None = None) -> Tile:
    """The fastest tile for `count` rows of `width` pixels with so many channels.

    Args:
        tuning: the driver's.
        minimum: leaves out tiles of fewer pixels.
        allowed: leaves out other tiles.
    """

    def cost(entry: tuple[Tile, float]) -> float:
        tile, rate = entry
        work = tile[0] * tile[1] / rate
        return max(invocations(tile, width, channels, count), tuning.lanes) * work

    return min((entry for entry in tuning.tiles if entry[0][0] >= minimum
                and (allowed is None or entry[0] in allowed)), key=cost)[0]


# Rows are split where fewer than this many would be walked at a time, into parts of at least this
# many texels: a further dispatch takes as long as a walk over some thousand.
FEW_ROWS, LONG_ROW = 512, 2048


def parts_of_rows(rows: int, count: int, longest: int) -> int:
    """Into how many equal parts to split each of `rows` rows of `count` texels.

    Args:
        longest: texels that one invocation may walk over.
    """
    if not count:
        return 1
    parts = -(-count // longest)
    if count >= LONG_ROW:
        parts = max(parts, min(count // (LONG_ROW // 16), FEW_ROWS // max(rows, 1)))
    chunk = -(-count // parts)
    return -(-count // chunk)
