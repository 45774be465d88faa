"""Winograd's F(2x2, 3x3) by workgroups that share what is at the points, in one dispatch.

See shaders/conv/winograd_shared.comp. It takes no scratch memory, so any layer may be done so,
whatever the arena has unused; on drivers whose workgroups share memory only (`Tuning.shares`).
Where the arena has room, the kernels of `vkrt.ops.winograd` need fewer multiplications.
"""

from __future__ import annotations

import math

from vkrt.ops.epilogue import EpilogueArgs
from vkrt.ops.shared_tiles import LARGE, MOST_SLICES, SMALL
from vkrt.ops.tiles import invocations
from vkrt.ops.winograd import GAIN, TEXEL_BYTES, Layer
from vkrt.work.target import GROUP, Target
from vkrt.work.tensor import Operand, short_name
from vkrt.work.tuning import Tile

SHADER = "winograd_shared"
# Pixels of a tile's side, and pairs of points
TILE, POINTS = 2, 16
# Tiles and channels of the result that a workgroup makes, its invocations, the registers that each
# takes, and bytes that they share
TILES, COLUMNS, SIZE, REGISTERS = 32, 32, 256, 128
SHARED_BYTES = POINTS * (TILES + COLUMNS) * TEXEL_BYTES
# The register tile of an invocation's sums
SUMS: Tile = (8, 8)
# What it takes to bring 4 channels of a tile, or 4 weights, to the points or back, as a part of
# what the 36 pairs of points of `vkrt.ops.winograd` take, which lie in memory
SHARE = 0.3


def suits(cx, layer: Layer, reads: list[Operand], dtype: str) -> bool:
    """Whether a layer can be done so, in less time than by a direct sum.

    Args:
        reads: the source first.
        dtype: of the result.
    """
    return (is_faster(layer, cx.target)
            and cx.compiled(SHADER, reads, short_name(dtype)) is not None)


def is_faster(layer: Layer, target: Target) -> bool:
    """The same of a driver that compiles the kernel."""
    return (target.tuning.shares and target.scratch != "none" and target.max_invocations >= SIZE
            and target.max_shared >= SHARED_BYTES and target.tuning.registers >= REGISTERS
            and time(layer, target) < GAIN * direct_time(layer, target))


def tiles_of(layer: Layer) -> tuple[int, int]:
    """Tiles of a row of the result and rows of tiles of an image."""
    return -(-layer.width // TILE), -(-layer.height // TILE)


def groups(layer: Layer) -> int:
    """Workgroups of a layer."""
    across, down = tiles_of(layer)
    return -(-across * down * layer.images // TILES) * -(-layer.channels // COLUMNS)


def time(layer: Layer, target: Target) -> float:
    """What a layer takes, as `winograd.Layer.time`."""
    tuning, times = target.tuning, target.tuning.winograd_times
    # Groups that there would be if no lane were idle
    filled = max(groups(layer), tuning.lanes / SIZE)
    product = POINTS * TILES * COLUMNS / dict(tuning.tiles)[SUMS]
    each = product + SHARE * (times.points * TILES + times.weight * COLUMNS)
    return (filled * (layer.input_texels * each + SHARE * times.points * TILES * COLUMNS / 4)
            + times.dispatch)


def direct_time(layer: Layer, target: Target) -> float:
    """What a direct sum by workgroups that share tiles takes, as `winograd.Layer.time`."""
    tuning, pixels = target.tuning, layer.width * layer.height * layer.images
    best = math.inf
    for side, tile, slices in ((SMALL, (4, 4), MOST_SLICES), (LARGE, (8, 8), 1)):
        filled = max(invocations((side, side), pixels, layer.channels) * GROUP,
                     tuning.lanes / slices)
        best = min(best, filled * tile[0] * tile[1] / dict(tuning.tiles)[tile])
    return 9 * layer.input_texels * best + tuning.winograd_times.dispatch


def convolve(cx, layer: Layer, result: Operand, source: Operand, weight: Operand,
             epilogue: EpilogueArgs, *, padding: tuple[int, int], height: int) -> None:
    """Dispatches result = clamp(source * weight + bias); arguments as of `winograd.convolve`."""
    across, down = tiles_of(layer)
    params = [source.grid[0], height, layer.input_texels, layer.width, layer.height,
              layer.channels, across, down, across * down * layer.images, padding[1], padding[0],
              *epilogue.params]
    cx.share(SHADER, params, [result], [source, weight, *epilogue.vectors], groups(layer),
             size=SIZE, loops=layer.input_texels + 4)
