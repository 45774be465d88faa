"""Winograd's F(2x2, 3x3) by workgroups that share what is at the points, in one dispatch.

See shaders/conv/winograd_shared.comp. It takes no scratch memory, so it can do any layer, whatever
the arena has unused. It is only for drivers whose workgroups share memory (`Tuning.shares`). Where
the arena has room, the kernels of `vkrt.ops.winograd` need fewer multiplications.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from vkrt.ops.epilogue import EpilogueArgs
from vkrt.ops.shared_tiles import LARGE, MOST_SLICES, SMALL
from vkrt.ops.tiles import invocations
from vkrt.ops.winograd import GAIN, TEXEL_BYTES, Layer
from vkrt.work.target import GROUP, Target
from vkrt.work.tensor import Operand
from vkrt.work.tuning import Tile

SHADER = "winograd_shared"
# Pixels of a tile's side, and pairs of points
TILE, POINTS = 2, 16
# Registers that an invocation takes. Devices may give the invocations of workgroups of `MANY` no
# more than half of their registers: for these workgroups a device needs `MANY_REGISTERS`.
REGISTERS, MANY, MANY_REGISTERS = 128, 512, 216
# The register tile of an invocation's sums, by the side of its workgroup
SUMS: dict[int, Tile] = {32: (8, 8), 16: (4, 8)}
# The time to bring 4 channels of a tile, or 4 weights, to the points or back, as a part of the time
# for the 36 pairs of points of `vkrt.ops.winograd`, which lie in memory
SHARE = 0.3


class Group(NamedTuple):
    """A workgroup.

    Attributes:
        side: it makes so many tiles of a layer by so many channels of its result, 32 or 16.
        slices: 1, 2 or 4; each has every first, second or fourth of the input texels.
    """

    side: int
    slices: int = 1

    @property
    def size(self) -> int:
        """Its invocations."""
        return self.side ** 2 * POINTS // math.prod(SUMS[self.side]) * self.slices

    @property
    def shared_bytes(self) -> int:
        """Bytes that its slices share: the tiles and channels of each at all pairs of points."""
        return 2 * self.side * POINTS * TEXEL_BYTES * self.slices

    def number(self, layer: Layer) -> int:
        """Workgroups of a layer."""
        across, down = tiles_of(layer)
        return -(-across * down * layer.images // self.side) * -(-layer.channels // self.side)


LARGE_GROUP = Group(32)
# With the most slices first
SMALL_GROUPS = Group(16, 4), Group(16, 2), Group(16)


def tiles_of(layer: Layer) -> tuple[int, int]:
    """Tiles of a row of the result and rows of tiles of an image."""
    return -(-layer.width // TILE), -(-layer.height // TILE)


def _fits(group: Group, target: Target) -> bool:
    registers = REGISTERS if group.size < MANY else MANY_REGISTERS
    return (group.size <= target.max_invocations and group.shared_bytes <= target.max_shared
            and registers <= target.tuning.registers)


def group_for(layer: Layer, target: Target) -> Group:
    """The workgroups that take least time: where there are few, smaller ones, and with slices."""

    def has_work(group: Group) -> bool:
        # A few invocations for each lane: one works while others wait.
        return (_fits(group, target) and not layer.input_texels % group.slices
                and group.number(layer) * group.size <= 3 * target.tuning.lanes)

    small = next(filter(has_work, SMALL_GROUPS), SMALL_GROUPS[-1])
    # Slices wait less, which the times do not say. Small groups without slices have to gain more:
    # they are a further pipeline.
    part = 1 if small.slices > 1 else GAIN
    is_better = _time(layer, target, small) < part * _time(layer, target, LARGE_GROUP)
    return small if is_better else LARGE_GROUP


def _time(layer: Layer, target: Target, group: Group) -> float:
    """What a layer takes with such workgroups, as `winograd.Layer.time`."""
    tuning, times, side = target.tuning, target.tuning.winograd_times, group.side
    # All lanes take as long as the busiest of them.
    rounds = max(math.ceil(group.number(layer) * group.size / tuning.lanes), 1)
    each = (POINTS * side ** 2 / dict(tuning.tiles)[SUMS[side]]
            + SHARE * side * (times.points + times.weight))
    return (rounds * tuning.lanes / group.size
            * (layer.input_texels * each + SHARE * times.points * side ** 2 / 4) + times.dispatch)


def time(layer: Layer, target: Target) -> float:
    """What a layer takes, as `winograd.Layer.time`; infinity where the target does not have the
    kernel, or a direct sum is better."""
    if not (target.tuning.shares and target.scratch != "none" and _fits(LARGE_GROUP, target)):
        return math.inf
    found = _time(layer, target, group_for(layer, target))
    return found if found < GAIN * direct_time(layer, target) else math.inf


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
    group = group_for(layer, cx.target)
    across, down = tiles_of(layer)
    params = [source.grid[0], height, layer.input_texels, layer.width, layer.height,
              layer.channels, across, down, across * down * layer.images, padding[1], padding[0],
              group.side, *epilogue.params]
    cx.share(SHADER, params, [result], [source, weight, *epilogue.vectors], group.number(layer),
             size=group.size, loops=layer.input_texels // group.slices + 4)
