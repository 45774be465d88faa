"""Winograd's F(4x4, 3x3) for dense 3x3 convolutions, see shaders/conv/winograd.glsl.

Three small kernels around 36 matrix products: weights and pixels to points, products to pixels. The
weight itself lies as for every convolution and is loaded, streamed and shared as usual; what is
made of it and of the pixels is scratch memory, alive in one node only. The pixels are done in
strips of rows of tiles, as many at a time as the scratch budget allows. Where the result goes over
a source that nothing else reads, which direct sums cannot do, the source's bytes are scratch memory
beside that. An infinity or a NaN in the source reaches every pixel of its tiles.
"""

from __future__ import annotations

from dataclasses import dataclass

from vkrt.ops import matmul, tiles
from vkrt.ops.epilogue import EpilogueArgs, plain
from vkrt.work.target import Target
from vkrt.work.tensor import Operand, round_up, row_major
from vkrt.work.tuning import Tile, Tuning

TILE, SIDE, POINTS = 4, 6, 36
TEXEL_BYTES = 16

# Registers that an invocation takes for a whole tile, a half and a row, and how many invocations
# bring a weight, a tile's pixels and its products to or from the points then.
PARTS = {160: (1, 1, 1), 112: (1, 2, 2), 0: (SIDE, SIDE, TILE)}

# Used where it takes less than this part of the direct sum's time.
GAIN = 0.8


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
        weights = self.channels * self.input_texels
        inputs, outputs = self.tiles_x * self.input_texels, self.tiles_x * self.texels
        left = budget - _bytes(weights, target)
        most = target.max_buffer_range
        if left < 0 or _bytes(max(weights, inputs, outputs), target) > most:
            return 0
        strip = min(left // _bytes(inputs + outputs), most // _bytes(max(inputs, outputs)),
                    self.rows)
        while strip and _bytes(strip * inputs, target) + _bytes(strip * outputs, target) > left:
            strip -= 1
        if target.storage == "texture3d":
            extents = self.channels, POINTS, self.input_texels, self.texels
            if max(extents) > target.max_image_extent:
                return 0
            strip = min(strip, target.max_image_extent // self.tiles_x)
        return strip

    def direct_time(self, tuning: Tuning) -> float:
        """What the direct sum takes."""
        return 9 * self.input_texels * _time(tuning, tiles.CONVOLUTIONS, self.width,
                                             self.channels, rows=self.height * self.images)

    def time(self, tuning: Tuning, strip: int) -> float:
        """What it takes by strips of so many rows of tiles."""
        count, times = strip * self.tiles_x, tuning.winograd_times
        each = (self.input_texels * _time(tuning, tiles.PRODUCTS, count, self.channels,
                                           count=POINTS)
                + times.points * count * (self.input_texels + self.texels) + 3 * times.dispatch)
        return (times.weight * self.channels * self.input_texels + times.dispatch
                + each * -(-self.rows // strip))


def _bytes(texels: int, target: Target | None = None) -> int:
    """Bytes of so many texels at every pair of points, for a target as far as they take memory."""
    nbytes = POINTS * texels * TEXEL_BYTES
    return round_up(nbytes, target.offset_alignment) if target else nbytes


def _time(tuning: Tuning, family: tuple[Tile, ...], width: int, channels: int, rows: int = 1,
          count: int = 1) -> float:
    """The time of a family's tiles for one texel of the summed dimension."""
    sizes = width, channels, rows, count
    tile = tiles.choose(tuning, *sizes, allowed=tiles.with_wide(family, "f32"))
    invocations = max(tiles.invocations(tile, *sizes), tuning.lanes)
    return invocations * tile[0] * tile[1] / dict(tuning.tiles)[tile]


def choose(layer: Layer, budget: int, target: Target) -> int:
    """Rows of tiles to do at a time; 0 where the direct sum is better or the budget too small.

    Args:
        budget: bytes of scratch memory that may be used.
    """
    strip = layer.strip(budget, target)
    if not strip:
        return 0
    strip = -(-layer.rows // -(-layer.rows // strip))  # strips of about the same length
    tuning = target.tuning
    return strip if layer.time(tuning, strip) < GAIN * layer.direct_time(tuning) else 0


def strips(rows: int, strip: int, in_place: bool) -> list[tuple[int, int]]:
    """(first, count) of the rows of tiles of each strip.

    All strips are equally long, so that they share pipelines: the last two may overlap. In place
    they must not, and the last may be shorter: what it reads would be written over.
    """
    if in_place:
        return [(first, min(strip, rows - first)) for first in range(0, rows, strip)]
    return [(min(first, rows - strip), strip) for first in range(0, rows, strip)]


def convolve(cx, layer: Layer, strip: int, result: Operand, source: Operand, weight: Operand,
             epilogue: EpilogueArgs, *, padding: tuple[int, int], height: int) -> None:
    """Dispatches result = clamp(source * weight + bias).

    Args:
        strip: rows of tiles to do at a time.
        result: may lie where the source does.
        weight: a matrix operand, columns over (ky, kx, input channel).
        epilogue: with the bias.
        padding: (y, x).
        height: of an image of the source.
    """
    inputs = layer.input_texels
    matrix = cx.temporary((POINTS, layer.channels, layer.inputs), result.dtype, row_major(3))
    of_weight, of_pixels, of_products = next(
        parts for registers, parts in PARTS.items() if registers <= cx.target.tuning.registers)
    cx.dispatch("winograd_weight", [layer.channels, inputs, of_weight], [matrix], [weight],
                layer.channels * inputs * of_weight)

    def to_points(first: int, rows: int) -> Operand:
        count = rows * layer.tiles_x
        pixels = cx.temporary((POINTS, count, layer.inputs), result.dtype, row_major(3))
        cx.dispatch("winograd_input", [source.grid[0], height, inputs, layer.tiles_x, layer.tiles_y,
                                       first, rows, padding[1], padding[0], of_pixels], [pixels],
                    [source], count * inputs * of_pixels)
        return pixels

    parts = strips(layer.rows, strip, result.storage is source.storage)
    pixels = to_points(*parts[0])
    for number, (first, rows) in enumerate(parts):
        count = rows * layer.tiles_x
        products = cx.temporary((POINTS, count, layer.channels), result.dtype, row_major(3))
        # The bias only fills a binding here.
        matmul.multiply(cx, products, pixels, matrix, rows=count, batches=POINTS,
                        epilogue=plain(epilogue.vectors[0], False))
        # Of this strip's rows the next one reads the last: before they are written over.
        if number + 1 < len(parts):
            pixels = to_points(*parts[number + 1])
        cx.dispatch("winograd_output", [layer.width, layer.height, layer.channels, layer.tiles_x,
                                        layer.tiles_y, first, rows, of_products, *epilogue.params],
                    [result], [products, *epilogue.vectors], count * layer.texels * of_products)
