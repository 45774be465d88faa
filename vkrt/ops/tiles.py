"""Register tiles: how much of a result one invocation computes.

A larger tile reuses each loaded texel more often, but leaves fewer invocations and wastes more of
the last tile. The speed of each on full tiles was measured for every driver (`Tuning.tiles`).
On GPUs workgroups share what they read, if the result is large enough for their larger tiles
(`vkrt.ops.shared_tiles`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from vkrt.work.target import Target
from vkrt.work.tensor import Operand, round_up
from vkrt.work.tuning import LANES, WIDE_TILES, Tile, Tuning

# The tiles of matmul_AxB.comp, and of conv2d_AxB.comp and deconv2d_AxB.comp. 2 by 4 is the best one
# for two rows of a product. For convolutions it is the best for results two pixels wide, which
# hardly any network has, and with too few registers for 4 by 4 (`SMALLER`, conv2d_AxB.comp alone).
PRODUCTS: tuple[Tile, ...] = ((8, 8), (4, 8), (4, 4), (2, 4))
CONVOLUTIONS: tuple[Tile, ...] = ((8, 8), (4, 8), (4, 4), (1, 4))
SMALLER: Tile = (2, 4)
# Registers that products of floats take: sums, the texels of all rows and of a line, addresses
PRODUCT_REGISTERS: dict[Tile, int] = {(8, 8): 120, (4, 8): 64, (4, 4): 46, (2, 4): 26}
# Registers that convolutions take: also for where each pixel lies and whether it is in the image
CONVOLUTION_REGISTERS: dict[Tile, int] = {(8, 8): 136, (4, 8): 90, (4, 4): 60, (2, 4): 32,
                                          (1, 4): 24}
# Registers that both take for 8-bit numbers in words of 4: 16 numbers of a row and a line at a time
WORD_REGISTERS: dict[Tile, int] = {(8, 8): 200, (4, 8): 132, (4, 4): 68, (2, 4): 48, (1, 4): 40}


def with_wide(tiles: tuple[Tile, ...], dtype: str) -> tuple[Tile, ...]:
    """The tiles of a family of kernels in a variant; variants of floats have the wide tiles too."""
    return (*WIDE_TILES, *tiles) if dtype in ("f32", "f16") else tiles


def invocations(tile: Tile, width: int, channels: int, rows: int = 1, count: int = 1) -> int:
    """Invocations for `count` products of `rows` rows of `width` pixels with so many channels."""
    tiles = -(-width // tile[0]) * rows
    if tile in WIDE_TILES:
        tiles = round_up(tiles, LANES)
    return tiles * -(-channels // tile[1]) * count


def feature_of(tile: Tile) -> str:
    """The feature that kernels with a tile need of a device, "" for none."""
    return "shuffle" if tile in WIDE_TILES else ""


def hands_round(target: Target) -> bool:
    """Whether lanes that load for each other are faster on a target: they are if wide tiles are."""
    return ("shuffle" in target.features
            and any(tile in WIDE_TILES for tile, _ in target.tuning.tiles))


def too_large(tuning: Tuning, registers: Mapping[Tile, int]) -> set[Tile]:
    """The tiles of a family that spill on a device, by the registers that an invocation takes with
    each; except the smallest, which is used anyway."""
    least = min(registers, key=lambda tile: registers[tile])
    return {tile for tile, count in registers.items() if count > tuning.registers and tile != least}


def too_large_for(tuning: Tuning, source: Operand, registers: Mapping[Tile, int]) -> set[Tile]:
    """The tiles of a family that spill on a device with a source, by the registers of each for
    numbers other than 8-bit ones in words of 4."""
    return too_large(tuning, WORD_REGISTERS if source.dtype == "int32" else registers)


def choose(tuning: Tuning, width: int, channels: int, rows: int = 1, count: int = 1, *,
           allowed: Collection[Tile] | None = None, refused: Collection[Tile] = ()) -> Tile:
    """The fastest tile for `count` products of `rows` rows of `width` pixels with so many channels,
    of those allowed (None: of all) and not refused. If no other is left, a refused one is chosen:
    the load then fails and names it."""

    def cost(entry: tuple[Tile, float]) -> float:
        tile, rate = entry
        work = tile[0] * tile[1] / rate
        return max(invocations(tile, width, channels, rows, count), tuning.lanes) * work

    there = [entry for entry in tuning.tiles if allowed is None or entry[0] in allowed]
    return min([entry for entry in there if entry[0] not in refused] or there, key=cost)[0]


# Rows of at least `LONG_ROW` texels are split where fewer than `FEW_ROWS` would be walked at once:
# a further dispatch takes as long as a walk over some thousand texels.
FEW_ROWS, LONG_ROW = 512, 2048


def parts_of_rows(rows: int, count: int, longest: int) -> int:
    """Into how many equal parts to split each of `rows` rows of `count` texels, if one invocation
    may go over `longest` texels."""
    if not count:
        return 1
    parts = -(-count // longest)
    if count >= LONG_ROW:
        parts = max(parts, min(count // (LONG_ROW // 16), FEW_ROWS // max(rows, 1)))
    chunk = -(-count // parts)
    return -(-count // chunk)
