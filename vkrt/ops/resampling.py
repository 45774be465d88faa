"""Changes of resolution: pixel shuffle, nearest and bilinear upsampling, sampling by a grid."""

from __future__ import annotations

from vkrt.errors import UnsupportedError
from vkrt.graph.graph import Node
from vkrt.ops.arguments import argument, tensor_argument
from vkrt.ops.broadcast import convert
from vkrt.ops.copying import Walk, emit
from vkrt.ops.pooling import image_order, image_sides
from vkrt.ops.registry import op
from vkrt.pte.coerce import as_bool, as_float, as_float_list, as_int
from vkrt.work.tensor import channels_last, row_major


@op("aten.pixel_shuffle.default")
def pixel_shuffle(cx, node: Node) -> None:
    """[.., C * r * r, H, W] -> [.., C, H * r, W * r]; args x, r."""
    x, out = tensor_argument(node, 0), node.outs[0]
    factor = as_int(argument(node, 1))
    if x.rank not in (3, 4) or factor < 1 or x.sizes[-3] != out.sizes[-3] * factor * factor:
        raise UnsupportedError(f"{cx.where()}: {list(x.sizes)} by {factor} to {list(out.sizes)}")
    channels, height, width = out.sizes[-3], x.sizes[-2], x.sizes[-1]
    batch = x.sizes[0] if x.rank == 4 else 1
    order = channels_last(4) if x.rank == 4 else (1, 2, 0)
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


@op("aten.upsample_nearest2d.vec")
def upsample_nearest2d(cx, node: Node) -> None:
    """Args x, output size or None, scale factors or None."""
    x, out = tensor_argument(node, 0), node.outs[0]
    order = image_order(cx, x)
    factors = argument(node, 2)
    factors = as_float_list(factors) if factors else ()
    steps = []
    for index, (size, out_size) in enumerate(zip(x.sizes[-2:], out.sizes[-2:])):
        steps.append(_step(size, out_size, as_float(factors[index]) if factors else 0.0))
    source = cx.read(x, order)
    result = cx.write(out, order)
    cx.dispatch("upsample_nearest2d",
                [*image_sides(source, result, x, out), steps[1], steps[0]],
                [result], [source], result.texels)


def _step(size: int, out_size: int, factor: float) -> float:
    """Source pixels per pixel of the result, as torch's UpSample.h computes it."""
    if out_size in (size, 2 * size):
        return size / out_size
    return 1.0 / factor if factor > 0 else size / out_size


@op("aten.upsample_bilinear2d.vec")
def upsample_bilinear2d(cx, node: Node) -> None:
    """Args x, output size or None, align_corners, scale factors or None."""
    x, out = tensor_argument(node, 0), node.outs[0]
    order = image_order(cx, x)
    align = as_bool(node.args[2])
    given = argument(node, 3)
    factors = as_float_list(given) if given else (0.0, 0.0)
    steps = [_linear_step(size, out_size, factor, align)
             for size, out_size, factor in zip(x.sizes[-2:], out.sizes[-2:], factors)]
    source = cx.read(x, order)
    result = cx.write(out, order)
    cx.dispatch("upsample_bilinear2d",
                [*image_sides(source, result, x, out), steps[1], steps[0], align],
                [result], [source], result.texels)


def _linear_step(size: int, out_size: int, factor: float, align: bool) -> float:
    """Source pixels per pixel of the result, as torch's UpSample.h computes it."""
    if align:
        return (size - 1) / (out_size - 1) if out_size > 1 else 0.0
    return 1.0 / factor if factor > 0 else size / out_size


@op("aten.grid_sampler_2d.default")
def grid_sampler_2d(cx, node: Node) -> None:
    """Args x [N, C, H, W], grid [N, OH, OW, 2], mode (0 bilinear, 1 nearest), padding (0 zeros,
    1 border, 2 reflection), align_corners."""
    x, grid, out = tensor_argument(node, 0), tensor_argument(node, 1), node.outs[0]
    order = image_order(cx, x)
    mode, padding, align = as_int(node.args[2]), as_int(node.args[3]), as_bool(node.args[4])
    if mode > 1:
        raise UnsupportedError(f"{cx.where()}: interpolation mode {mode} (bicubic); vkrt has "
                               "bilinear (0) and nearest (1)")
    source = cx.read(x, order)
    places = convert(cx, cx.read(grid, row_major(4)), out.dtype)
    result = cx.write(out, order)
    cx.dispatch("grid_sampler_2d",
                [*image_sides(source, result, x, out), mode, padding, align],
                [result], [source, places], result.texels)
