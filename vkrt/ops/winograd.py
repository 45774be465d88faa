"""Winograd's F(4x4, 3x3) for dense 3x3 convolutions, see shaders/conv/winograd.glsl.

Three small kernels around 36 matrix products: weights and pixels to points, products to pixels. The
weight itself lies as for every convolution and is loaded, streamed and shared as usual. Weights,
pixels and products at the points are scratch memory, alive in one node only. The scratch budget
decides how much is done at a time (`Portion`): some rows of tiles, or, for few pixels and many
channels, some channels of the result. The result may go over a source that nothing else reads,
which direct sums cannot do: then the source's bytes are added to the budget. An infinity or a NaN
in the source reaches every pixel of its tiles.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from vkrt.ops import matmul, tiles
from vkrt.ops.epilogue import EpilogueArgs, plain
from vkrt.work.target import Target
from vkrt.work.tensor import Operand, round_up, row_major
from vkrt.work.tuning import Tile, Tuning

TILE, SIDE, POINTS = 4, 6, 36
TEXEL_BYTES = 16

# Registers that an invocation takes for a whole tile, for a half of it and for a row; and how many
# invocations then bring a weight, a tile's pixels and its products to or from the points.
PARTS = {160: (1, 1, 1), 112: (1, 2, 2), 0: (SIDE, SIDE, TILE)}

# Used where it takes less than this part of the direct sum's time.
GAIN = 0.8


class Portion(NamedTuple):
    """What is done of a layer at a time. It has all rows, or all channels.

    Attributes:
        rows: of tiles.
        channels: of the result.
    """

    rows: int
    channels: int

    @property
    def size(self) -> int:
        """The number by which portions of a layer are compared."""
        return self.rows * self.channels


@dataclass(frozen=True)
class Layer:
    """A 3x3 convolution with stride 1 as tiles of 4x4 pixels of its result.

    Attributes:
        inputs, channels: channels that go in and come out.
        width, height: of the result.
        images: how many.
    """

    inputs: int
    channels: int
    width: int
    height: int
    images: int

    @property
    def tiles_x(self) -> int:
        return -(-self.width // TILE)

    @property
    def tiles_y(self) -> int:
        return -(-self.height // TILE)

    @property
    def rows(self) -> int:
        """Rows of tiles in all images."""
        return self.tiles_y * self.images

    @property
    def input_texels(self) -> int:
        return -(-self.inputs // 4)

    @property
    def texels(self) -> int:
        """Texels of one pixel of the result."""
        return -(-self.channels // 4)

    def strip(self, budget: int, target: Target) -> int:
        """The most rows of tiles whose scratch memory has at most `budget` bytes; or 0."""
        of_row = self.tiles_x * self.input_texels, self.tiles_x * self.texels
        strip = _fitting(self.rows, of_row, self.channels * self.input_texels, budget, target)
        if target.storage == "texture3d":
            extents = self.channels, POINTS, self.input_texels, self.texels
            if max(extents) > target.max_image_extent:
                return 0
            strip = min(strip, target.max_image_extent // self.tiles_x)
        return strip

    def part(self, budget: int, target: Target) -> int:
        """The most channels of the result, whole texels of them or all, whose scratch memory has at
        most `budget` bytes together with that of all pixels; or 0."""
        count = self.rows * self.tiles_x
        of_texel = 4 * self.input_texels, count
        part = min(4 * _fitting(self.texels, of_texel, count * self.input_texels, budget, target),
                   self.channels)
        if (target.storage == "texture3d"
                and max(count, part, POINTS, self.input_texels) > target.max_image_extent):
            return 0
        return part

    def direct_time(self, tuning: Tuning) -> float:
        """The time of the direct sum."""
        return 9 * self.input_texels * _time(tuning, tiles.CONVOLUTIONS, self.width,
                                             self.channels, rows=self.height * self.images)

    @property
    def whole(self) -> Portion:
        """The portion that is the whole layer."""
        return Portion(self.rows, self.channels)

    def time(self, tuning: Tuning, portion: Portion) -> float:
        """The time of the layer, one portion after the other."""
        count, times = portion.rows * self.tiles_x, tuning.winograd_times
        product = self.input_texels * _time(tuning, tiles.PRODUCTS, count, portion.channels,
                                            count=POINTS)
        strips, parts = -(-self.rows // portion.rows), -(-self.channels // portion.channels)
        texels = strips * self.input_texels + strips * parts * -(-portion.channels // 4)
        return (times.weight * self.channels * self.input_texels + times.points * count * texels
                + strips * parts * product + (parts + strips + 2 * strips * parts) * times.dispatch)


def _bytes(texels: int, target: Target | None = None) -> int:
    """Bytes of `texels` texels at every pair of points; with a target, as it aligns them."""
    nbytes = POINTS * texels * TEXEL_BYTES
    return round_up(nbytes, target.offset_alignment) if target else nbytes


def _fitting(count: int, each: tuple[int, int], third: int, budget: int, target: Target) -> int:
    """The most of `count` items whose scratch memory has at most `budget` bytes; or 0. Each item
    takes texels in each of two storages; a third storage has a fixed number."""
    left, most = budget - _bytes(third, target), target.max_buffer_range
    if left < 0 or _bytes(max(third, *each), target) > most:
        return 0
    found = min(left // _bytes(sum(each)), most // _bytes(max(each)), count)
    while found and sum(_bytes(found * texels, target) for texels in each) > left:
        found -= 1
    return found


def _time(tuning: Tuning, family: tuple[Tile, ...], width: int, channels: int, rows: int = 1,
          count: int = 1) -> float:
    """The time of a family's tiles for one texel of the summed dimension."""
    sizes = width, channels, rows, count
    tile = tiles.choose(tuning, *sizes, allowed=tiles.with_wide(family, "f32"))
    invocations = max(tiles.invocations(tile, *sizes), tuning.lanes)
    return invocations * tile[0] * tile[1] / dict(tuning.tiles)[tile]


def choose(layer: Layer, budget: int, target: Target) -> Portion | None:
    """What to do at a time with `budget` bytes of scratch memory; None where the direct sum is
    better or the budget too small."""
    tuning = target.tuning
    portions = [Portion(_share(layer.rows, layer.strip(budget, target)), layer.channels)]
    if tuning.winograd_parts:
        part = layer.part(budget, target)
        portions.append(Portion(layer.rows, min(round_up(_share(layer.channels, part), 4), part)))
    best = min((portion for portion in portions if portion.size),
               key=lambda portion: layer.time(tuning, portion), default=None)
    if best is None or layer.time(tuning, best) >= GAIN * layer.direct_time(tuning):
        return None
    return best


def _share(count: int, most: int) -> int:
    """How many of `count` to do at a time: `most` or fewer, each time about as many; 0 of none."""
    return -(-count // -(-count // most)) if most else 0


def strips(rows: int, strip: int, in_place: bool) -> list[tuple[int, int]]:
    """(first, count) of the rows of tiles of each strip.

    All strips are equally long, so that they share pipelines, and the last two may overlap. In
    place the last one would then read what is already written over: it is shorter instead.
    """
    if in_place:
        return [(first, min(strip, rows - first)) for first in range(0, rows, strip)]
    return [(min(first, rows - strip), strip) for first in range(0, rows, strip)]


def convolve(cx, layer: Layer, portion: Portion, result: Operand, source: Operand, weight: Operand,
             epilogue: EpilogueArgs, *, padding: tuple[int, int], height: int) -> None:
    """Dispatches result = clamp(source * weight + bias).

    Args:
        portion: what to do at a time.
        result: may lie where the source does.
        weight: a matrix operand, columns over (ky, kx, input channel).
        epilogue: with the bias.
        padding: (y, x).
        height: of an image of the source.
    """
    inputs = layer.input_texels
    of_weight, of_pixels, of_products = next(
        parts for registers, parts in PARTS.items() if registers <= cx.target.tuning.registers)

    def weights_at_points(first: int, channels: int) -> Operand:
        matrix = cx.temporary((POINTS, channels, layer.inputs), result.dtype, row_major(3))
        cx.dispatch("winograd_weight", [channels, inputs, first, of_weight], [matrix], [weight],
                    channels * inputs * of_weight)
        return matrix

    def pixels_at_points(first: int, rows: int) -> Operand:
        count = rows * layer.tiles_x
        pixels = cx.temporary((POINTS, count, layer.inputs), result.dtype, row_major(3))
        cx.dispatch("winograd_input", [source.grid[0], height, inputs, layer.tiles_x, layer.tiles_y,
                                       first, rows, padding[1], padding[0], of_pixels], [pixels],
                    [source], count * inputs * of_pixels)
        return pixels

    def multiplied(pixels: Operand, matrix: Operand) -> Operand:
        _, count, _ = pixels.sizes
        products = cx.temporary((POINTS, count, matrix.sizes[1]), result.dtype, row_major(3))
        # The bias only fills a binding here.
        matmul.multiply(cx, products, pixels, matrix, rows=count, batches=POINTS,
                        epilogue=plain(epilogue.vectors[0], False))
        return products

    def to_pixels(products: Operand, row: int, channel: int) -> None:
        _, count, channels = products.sizes
        texels = -(-channels // 4)
        cx.dispatch("winograd_output", [layer.width, layer.height, layer.channels, layer.tiles_x,
                                        layer.tiles_y, row, count // layer.tiles_x, channel // 4,
                                        texels, of_products, *epilogue.params],
                    [result], [products, *epilogue.vectors], count * texels * of_products)

    if portion.channels < layer.channels:
        pixels = pixels_at_points(0, layer.rows)
        for first in range(0, layer.channels, portion.channels):
            matrix = weights_at_points(first, min(portion.channels, layer.channels - first))
            to_pixels(multiplied(pixels, matrix), 0, first)
        return
    matrix = weights_at_points(0, layer.channels)
    parts = strips(layer.rows, portion.rows, result.storage is source.storage)
    pixels = pixels_at_points(*parts[0])
    for number, (first, _) in enumerate(parts):
        products = multiplied(pixels, matrix)
        # The next strip reads the last rows of this one, so it does before they are written over.
        if number + 1 < len(parts):
            pixels = pixels_at_points(*parts[number + 1])
        to_pixels(products, first, 0)
