"""Changes of resolution: pixel shuffle, nearest and bilinear upsampling, sampling by a grid."""

from __future__ import annotations

import math
from collections.abc import Sequence

from vkrt.ops.copying import Walk, emit
from vkrt.ops.dtypes import ONE, ONE_FLOAT
from vkrt.ops.pooling import image_order, image_sides, x_first
from vkrt.ops.registry import op
from vkrt.ops.sizes import Sizes, at_least, fail, need_rank, unsupported
from vkrt.work.tensor import Operand, Tensor, row_major


def _need_pixels(x: Sizes, factor: int, name: str) -> None:
    if len(x) < 3:
        fail("self", f"expected at least rank 3, got sizes {list(x)}")
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


@op("aten.pixel_shuffle.default", "self:T upscale_factor:i", sizes=pixel_shuffle_sizes, dtypes=ONE,
    kernels="aten::{}.out")
def _pixel_shuffle(cx, node, x, factor):
    pixel_shuffle(cx, node.outs[0], x, factor)


def pixel_shuffle(cx, out: Tensor, x: Tensor, factor: int) -> Operand:
    """[.., C * r * r, H, W] -> [.., C, H * r, W * r]; gives where it has put that."""
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
    emit(cx, result, source, Walk(tuple(d[0] for d in dims), tuple(d[1] for d in dims)))
    return result


def pixel_unshuffle_sizes(x: Sizes, factor: int) -> tuple[Sizes]:
    """The sizes of [.., C, H * r, W * r] with every square of pixels turned to channels."""
    _need_pixels(x, factor, "downscale_factor")
    *batch, channels, height, width = x
    if height % factor or width % factor:
        fail("downscale_factor", f"{factor} does not divide the sides of {height}x{width} pixels")
    return ((*batch, channels * factor * factor, height // factor, width // factor),)


@op("aten.pixel_unshuffle.default", "self:T downscale_factor:i", sizes=pixel_unshuffle_sizes,
    dtypes=ONE, kernels="aten::{}.out")
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
    emit(cx, cx.write(out, order), source, Walk(tuple(d[0] for d in dims),
                                                tuple(d[1] for d in dims)))


def _resampled(x, size, scales):
    """Sizes of a resampled image; one of `size` and `scales` is given."""
    need_rank(x, 4, "input")
    if (size is None) == (scales is None):
        fail("output_size", "expected either it or scale_factors")
    name = "scale_factors" if size is None else "output_size"
    given = scales if size is None else size
    if len(given) != 2:
        fail(name, f"expected 2 numbers, got {list(given)}")
    if size is None:
        if not all(math.isfinite(scale) for scale in scales):
            fail(name, f"expected finite numbers, got {list(scales)}")
        size = tuple(int(n * scale) for n, scale in zip(x[2:], scales, strict=True))
    if min(size) < 1 or 0 in x[1:]:
        fail(name, f"resamples sizes {list(x)} to {list(size)}")
    return ((*x[:2], *size),)


def _resample(cx, shader: str, x: Tensor, out: Tensor, numbers: Sequence,
              further: Sequence[Tensor] = ()) -> None:
    """Dispatches a kernel that makes one image of another; `numbers` are its last parameters."""
    order = image_order(4)
    source = cx.read(x, order)
    places = [cx.read(tensor, row_major(4)) for tensor in further]
    result = cx.write(out, order)
    cx.dispatch(shader, [*image_sides(source, result, x.sizes[2], out.sizes[2]), *numbers],
                [result], [source, *places], result.texels)


def _step(size: int, out_size: int, factor: float, align: bool = False) -> float:
    """Source pixels per pixel of the result, as torch's UpSample.h computes it."""
    if align:
        return (size - 1) / (out_size - 1) if out_size > 1 else 0.0
    return 1.0 / factor if factor > 0 else size / out_size


@op("aten.upsample_nearest2d.vec", "input:T output_size:[i]? scale_factors:[f]?", sizes=_resampled,
    dtypes=ONE_FLOAT, kernels="aten::{}.vec_out")
def upsample_nearest2d(cx, node, x, _size, scales):
    out = node.outs[0]
    # torch does not look at the factor where the size stays or doubles.
    steps = [size / out_size if out_size in (size, 2 * size) else _step(size, out_size, factor)
             for size, out_size, factor in zip(x.sizes[2:], out.sizes[2:], scales or (0, 0))]
    _resample(cx, "upsample_nearest2d", x, out, x_first(steps))


@op("aten.upsample_bilinear2d.vec", "input:T output_size:[i]? align_corners:b scale_factors:[f]?",
    sizes=lambda x, size, _align, scales: _resampled(x, size, scales), dtypes=ONE_FLOAT,
    kernels="aten::{}.vec_out")
def upsample_bilinear2d(cx, node, x, _size, align, scales):
    out = node.outs[0]
    steps = [_step(size, out_size, factor, align)
             for size, out_size, factor in zip(x.sizes[2:], out.sizes[2:], scales or (0, 0))]
    _resample(cx, "upsample_bilinear2d", x, out, [*x_first(steps), align])


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
    if mode == 2:
        unsupported("interpolation_mode", "2 (bicubic); vkrt has bilinear (0) and nearest (1)")
    return ((*x[:2], *grid[1:3]),)


@op("aten.grid_sampler_2d.default",
    "self:T grid:T interpolation_mode:i padding_mode:i align_corners:b",
    sizes=_grid_sampler_2d_sizes, dtypes=ONE_FLOAT, kernels="aten::{}.out")
def grid_sampler_2d(cx, node, x, grid, mode, padding, align):
    """x [N, C, H, W], grid [N, OH, OW, 2]; mode 0 is bilinear, 1 nearest; padding 0 is zeros,
    1 border, 2 reflection."""
    _resample(cx, "grid_sampler_2d", x, node.outs[0], [mode, padding, align], [grid])
