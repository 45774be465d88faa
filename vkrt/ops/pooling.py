"""Pooling over windows of two spatial dimensions, channels-last."""

from __future__ import annotations

from vkrt.errors import UnsupportedError
from vkrt.graph.graph import Node
from vkrt.ops.arguments import argument, ints, tensor_argument
from vkrt.ops.registry import op
from vkrt.pte.coerce import as_bool, as_int
from vkrt.work.tensor import Operand, Tensor, channels_last

# Values of avg_pool2d.comp's divisor that stand for a count.
COUNT_IMAGE, COUNT_PADDED = 0, -1


def image_order(cx, tensor: Tensor) -> tuple[int, ...]:
    """Channels-last order of [N, C, H, W] or [C, H, W]."""
    if tensor.rank not in (3, 4) or tensor.dtype not in ("float32", "float16"):
        raise UnsupportedError(f"{cx.where()}: {tensor.dtype}{list(tensor.sizes)}, a float tensor "
                               "[N, C, H, W] or [C, H, W] expected")
    return channels_last(4) if tensor.rank == 4 else (1, 2, 0)


def image_sides(source: Operand, result: Operand, x: Tensor, out: Tensor) -> list[int]:
    """X, H and Z of the source, X, H and Y of the result."""
    return [source.grid[0], x.sizes[-2], source.grid[2],
            result.grid[0], out.sizes[-2], result.grid[1]]


def _windows(cx, node: Node, dilation: tuple[int, ...] = ()) -> list[int]:
    """Kernel, stride and padding, each x before y; an empty stride is the kernel."""
    kernel = _pair(cx, ints(argument(node, 1)), "kernel", (), 1)
    stride = _pair(cx, ints(argument(node, 2)), "stride", kernel, 1)
    padding = _pair(cx, ints(argument(node, 3)), "padding", (0, 0), 0)
    return [*kernel[::-1], *stride[::-1], *padding[::-1]]


def _pair(cx, values: tuple[int, ...], what: str, default: tuple[int, ...], least: int):
    values = values * 2 if len(values) == 1 else values or default
    if len(values) != 2 or min(values) < least:
        raise UnsupportedError(f"{cx.where()}: {what} {list(values)} of a pooling window, two "
                               f"numbers of {least} or more expected")
    return values


@op("aten.max_pool2d.default", "aten.max_pool2d_with_indices.default")
def max_pool2d(cx, node: Node) -> None:
    """Args x, kernel, stride, padding, dilation, ceil_mode; an index is y * W + x."""
    x, out = tensor_argument(node, 0), node.outs[0]
    order = image_order(cx, x)
    windows = _windows(cx, node)
    dilation = _pair(cx, ints(argument(node, 4)), "dilation", (1, 1), 1)
    source = cx.read(x, order)
    result = cx.write(out, order)
    params = [*image_sides(source, result, x, out), result.packed, *windows, *dilation[::-1]]
    shader, writes = "max_pool2d", [result]
    if len(node.outs) > 1 and cx.used(node.outs[1]):
        shader, writes = "max_pool2d_with_indices", [result, cx.write(node.outs[1], order)]
    cx.dispatch(shader, params, writes, [source], result.texels,
                loops=(windows[0] + 1) * windows[1])


@op("aten.avg_pool2d.default")
def avg_pool2d(cx, node: Node) -> None:
    """Args x, kernel, stride, padding, ceil_mode, count_include_pad, divisor or None."""
    x, out = tensor_argument(node, 0), node.outs[0]
    order = image_order(cx, x)
    windows = _windows(cx, node)
    divisor = COUNT_PADDED if as_bool(argument(node, 5, True)) else COUNT_IMAGE
    if argument(node, 6) is not None:
        divisor = as_int(argument(node, 6))
        if divisor <= 0:
            raise UnsupportedError(f"{cx.where()}: divisor {divisor}, a positive one expected")
    source = cx.read(x, order)
    result = cx.write(out, order)
    params = [*image_sides(source, result, x, out), result.packed, *windows, divisor]
    cx.dispatch("avg_pool2d", params, [result], [source], result.texels,
                loops=(windows[0] + 1) * windows[1])
