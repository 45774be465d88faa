"""Operators of grids of pixels: pixel shuffle, sampling by a grid, the places of a grid's cells."""

from __future__ import annotations

from vkrt.graph.graph import Node
from vkrt.ops.dtypes import FLOAT, ONE, ONE_FLOAT
from vkrt.ops.pooling import image_order, image_sides
from vkrt.ops.registry import op
from vkrt.ops.rows import Places, RowRule, Window
from vkrt.ops.sizes import Sizes, at_least, fail, need_least_rank, need_rank, unsupported
from vkrt.ops.strided_copy import copy_strided
from vkrt.work.tensor import Operand, Tensor, row_major


def _need_pixels(x: Sizes, factor: int, name: str) -> None:
    need_least_rank(x, 3)
    if len(x) > 4:
        unsupported("self", f"rank {len(x)} (sizes {list(x)}); vkrt shuffles the pixels of tensors "
                    "of rank 3 or 4")
    at_least(factor, 1, name)


def pixel_shuffle_sizes(x: Sizes, factor: int) -> tuple[Sizes]:
    """The sizes of [.., C * r * r, H, W] shuffled."""
    _need_pixels(x, factor, "upscale_factor")
    *batch, channels, height, width = x
    if channels % (factor * factor):
        fail("upscale_factor", f"the square of {factor} does not divide {channels} channels")
    return ((*batch, channels // (factor * factor), height * factor, width * factor),)


def _shuffled_windows(node: Node, dim: int) -> Places | None:
    x, factor = node.args
    return [(x, Window(dim, unit=factor))] if dim == x.rank - 2 else None


@op("aten.pixel_shuffle.default", "self:T upscale_factor:i", sizes=pixel_shuffle_sizes, dtypes=ONE,
    rows=RowRule(_shuffled_windows))
def _pixel_shuffle(cx, node, x, factor):
    pixel_shuffle(cx, node.outs[0], x, factor)


def pixel_shuffle(cx, out: Tensor, x: Tensor, factor: int) -> Operand:
    """[.., C * r * r, H, W] -> [.., C, H * r, W * r]; gives the operand of the result."""
    channels, height, width = out.sizes[-3], x.sizes[-2], x.sizes[-1]
    batch = x.sizes[0] if x.rank == 4 else 1
    order = image_order(x.rank)
    source = cx.read(x, order)
    *outer, per_channel, per_row, per_pixel = source.strides()
    per_image = outer[0] if outer else 0
    # Where (batch, y, ry, x, rx, channel) of the result lies in the source.
    dims = [(batch, per_image), (height, per_row), (factor, factor * per_channel),
            (width, per_pixel), (factor, per_channel), (channels, factor * factor * per_channel)]
    if channels < 3:
        # As the last step of an upscaler: packed channels would be mostly padding.
        order = row_major(x.rank)
        dims.insert(1, dims.pop())
    result = cx.write(out, order)
    copy_strided(cx, result, source, dims)
    return result


def pixel_unshuffle_sizes(x: Sizes, factor: int) -> tuple[Sizes]:
    """The sizes of [.., C, H * r, W * r] with every square of pixels turned to channels."""
    _need_pixels(x, factor, "downscale_factor")
    *batch, channels, height, width = x
    if height % factor or width % factor:
        fail("downscale_factor", f"{factor} does not divide the sides of {height}x{width} pixels")
    return ((*batch, channels * factor * factor, height // factor, width // factor),)


@op("aten.pixel_unshuffle.default", "self:T downscale_factor:i", sizes=pixel_unshuffle_sizes,
    dtypes=ONE)
def _pixel_unshuffle(cx, node, x, factor):
    """[.., C, H * r, W * r] -> [.., C * r * r, H, W]."""
    out = node.outs[0]
    source = cx.read(x)
    *outer, per_channel, per_row, per_pixel = source.strides()
    order = image_order(x.rank)
    # Where (batch, y, x, channel, ry, rx) of the result lies in the source.
    dims = [(out.sizes[-2], factor * per_row), (out.sizes[-1], factor * per_pixel),
            (x.sizes[-3], per_channel), (factor, per_row), (factor, per_pixel)]
    if outer:
        dims.insert(0, (x.sizes[0], outer[0]))
    copy_strided(cx, cx.write(out, order), source, dims)


def _grid_sampler_2d_sizes(x, grid, mode, padding, _align):
    need_rank(x, 4, "self")
    need_rank(grid, 4, "grid")
    if grid[0] != x[0] or grid[3] != 2:
        fail("grid", f"expected sizes [{x[0]}, height, width, 2], got {list(grid)}")
    if not x[2] * x[3]:
        fail("self", f"expected pixels, got sizes {list(x)}")
    for name, value in (("interpolation_mode", mode), ("padding_mode", padding)):
        if value not in (0, 1, 2):
            fail(name, f"expected 0, 1 or 2, got {value}")
    return ((*x[:2], *grid[1:3]),)


@op("aten.grid_sampler_2d.default",
    "self:T grid:T interpolation_mode:i padding_mode:i align_corners:b",
    sizes=_grid_sampler_2d_sizes, dtypes=ONE_FLOAT)
def grid_sampler_2d(cx, node, x, grid, mode, padding, align):
    """x [N, C, H, W], grid [N, OH, OW, 2]; mode 0 is bilinear, 1 nearest, 2 bicubic; padding
    0 is zeros, 1 border, 2 reflection."""
    out, order = node.outs[0], image_order(4)
    source, places = cx.read(x, order), cx.read(grid, row_major(4))
    result = cx.write(out, order)
    cx.dispatch("grid_sampler_2d", [*image_sides(source, result, x.sizes[2], out.sizes[2]), mode,
                                    padding, align], [result], [source, places], result.texels)


def grid_priors_sizes(x, _stride, _offset):
    need_least_rank(x, 2)
    return ((x[-2] * x[-1], 2),)


@op("et_vk.grid_priors.default", "self:T stride:i offset:f", sizes=grid_priors_sizes, dtypes=FLOAT)
def _grid_priors(cx, node, x, stride, offset):
    """[H * W, 2]: (x + offset) * stride and (y + offset) * stride for an image [.., H, W]."""
    result = cx.write(node.outs[0])
    cx.dispatch("grid_priors", [*result.grid, x.sizes[-1], float(stride), offset], [result], [],
                result.texels)
