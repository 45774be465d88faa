"""Register tiles: how much of a result one invocation computes.

A larger tile reuses each loaded texel more often, but leaves fewer invocations and wastes more of
the last tile. How fast each is on full tiles was measured for every driver (`Tuning.tiles`).
"""

from __future__ import annotations

from vkrt.graph.tuning import Tile, Tuning


def invocations(tile: Tile, width: int, channels: int, count: int = 1) -> int:
    """Invocations for `count` rows of `width` pixels with so many channels."""
    return -(-width // tile[0]) * -(-channels // tile[1]) * count


def choose(tuning: Tuning, width: int, channels: int, count: int = 1, least: int = 1) -> Tile:
    """The fastest tile for `count` rows of `width` pixels with so many channels.

    Args:
        tuning: the driver's.
        least: leaves out tiles of fewer pixels.
    """

    def cost(entry: tuple[Tile, float]) -> float:
        tile, rate = entry
        work = tile[0] * tile[1] / rate
        return max(invocations(tile, width, channels, count), tuning.lanes) * work

    return min((entry for entry in tuning.tiles if entry[0][0] >= least), key=cost)[0]
