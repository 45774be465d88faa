"""Register tiles: how much of a result one invocation computes.

A larger tile reuses each loaded texel more often, but leaves fewer invocations and wastes more of
the last tile. The shaders conv2d_AxB and matmul_AxB have the tiles below.
"""

from __future__ import annotations

# (pixels or rows, channels or columns) -> multiply-adds per time on full tiles, relative.
# Measured with lavapipe 22.3 on 3x3 and 1x1 convolutions of 14 to 56 pixels a side.
TILES = {(8, 8): 20.0, (4, 8): 17.5, (4, 4): 14.0, (2, 4): 10.5, (1, 4): 8.0}

# Below this number of invocations the lanes of a device are idle; a further one costs nothing.
LANES = 64


def invocations(tile: tuple[int, int], width: int, channels: int, count: int = 1) -> int:
    """Invocations for `count` rows of `width` pixels with so many channels."""
    return -(-width // tile[0]) * -(-channels // tile[1]) * count


def choose(width: int, channels: int, count: int = 1, least: int = 1) -> tuple[int, int]:
    """The fastest tile for `count` rows of `width` pixels with so many channels.

    Args:
        least: leaves out tiles of fewer pixels.
    """

    def cost(tile: tuple[int, int]) -> float:
        work = tile[0] * tile[1] / TILES[tile]
        return max(invocations(tile, width, channels, count), LANES) * work

    return min((tile for tile in TILES if tile[0] >= least), key=cost)


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
