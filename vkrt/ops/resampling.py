"""Changes of resolution: pixel shuffle and nearest upsampling."""

from __future__ import annotations

from vkrt.errors import UnsupportedError
from vkrt.graph.graph import Node
from vkrt.graph.tensor import channels_last, row_major
from vkrt.ops.arguments import argument, tensor_argument
from vkrt.ops.copying import Walk, emit
from vkrt.ops.pooling import image_order, image_sides
from vkrt.ops.registry import op
from vkrt.pte.coerce import as_float, as_float_list, as_int


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
