"""What kernel choices depend on: the figures of a driver that were measured, not reported."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

Tile = tuple[int, int]

# Lanes of a subgroup that exchange weights in kernels for the feature shuffle
# (shaders/common/shuffle.glsl), and the tiles of these
LANES = 8
WIDE_TILES: tuple[Tile, ...] = ((4, 16),)


class WinogradTimes(NamedTuple):
    """Times of the kernels around Winograd's products (`vkrt.ops.winograd`), in the unit of
    `Tuning.tiles`: a tile of A by B with the rate R takes A * B / R for 4 summed channels.

    Attributes:
        points: of bringing 4 channels of a tile to the points, or back, the mean of both.
        weight: of bringing 4 weights there.
        dispatch: of any dispatch.
    """

    points: float = 12.0
    weight: float = 20.0
    dispatch: float = 1300.0


@dataclass(frozen=True)
class Tuning:
    """A driver's profile (`vkrt.device.rows`), as far as operators look at it.

    Attributes:
        tiles: register tiles (pixels or rows, channels or columns) of the shaders conv2d_AxB and
            matmul_AxB, and how many multiply-adds per time each does on full tiles, relative. Tiles
            of `WIDE_TILES` may be missing.
        lanes: below this number of invocations lanes of the device are idle, and one more
            invocation costs nothing.
        wide_depthwise: from this width on depthwise convolutions compute 8 pixels an invocation,
            below it 2.
        tall_depthwise: these 8 pixels are 4 in each of two rows where the kernel has few taps. That
            loads less if the compiler finds equal loads.
        min_groups: workgroups are made smaller where fewer than these would exist.
        reads_ahead: kernels that read far-apart lines of a weight side by side first read through
            these in the order of memory, so that the processor prefetches them.
        shares: kernels are made for GPUs: a workgroup shares what it reads and sums, through shared
            memory. On CPU drivers invocations that wait for each other only cost time.
        float_products: numbers of 8 bits are multiplied as floats, which is exact, and not as
            integers. GPUs multiply integers at a quarter of the rate; on CPU drivers the
            conversions cost more than they gain.
        registers: registers of 32 bits that an invocation can have before it spills some to memory.
            Kernels that take more run only on devices that have them, and on CPU drivers, which
            spill to a cache that is as near.
        winograd_times: what decides between Winograd's products and direct sums.
        winograd_parts: where there is no room for all weights at the points, weights are brought to
            the points for some channels of the result at a time.
    """

    tiles: tuple[tuple[tuple[int, int], float], ...] = (
        ((8, 8), 20.0), ((4, 8), 17.5), ((4, 4), 14.0), ((2, 4), 10.5), ((1, 4), 8.0))
    lanes: int = 64
    wide_depthwise: int = 3
    tall_depthwise: bool = False
    min_groups: int = 4
    reads_ahead: bool = False
    shares: bool = False
    float_products: bool = False
    registers: int = 1 << 16
    winograd_times: WinogradTimes = WinogradTimes()
    winograd_parts: bool = False
