"""Pooling over windows of two spatial dimensions, channels-last, and the parameters that it shares
with other kernels of images (shaders/common/windows.glsl, image_sides.glsl)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from vkrt.graph.graph import Node
from vkrt.ops.dtypes import INT32, ONE_FLOAT, ONE_NUMBER
from vkrt.ops.registry import op
from vkrt.ops.rows import Places, RowRule, Window, sliding, with_residual
from vkrt.ops.sizes import Sizes, fail, need_rank, per_dimension, unsupported
from vkrt.work.tensor import Operand, Tensor, channels_last

# Values of avg_pool2d.comp's divisor that stand for a count.
COUNT_IMAGE, COUNT_PADDED = 0, -1

# The place of the padding among the arguments
PADDING = 3


def image_order(rank: int) -> tuple[int, ...]:
    """Channels-last order of [N, C, H, W] or [C, H, W]."""
    return channels_last(4) if rank == 4 else (1, 2, 0)


def image_sides(source: Operand, result: Operand, height: int, out_height: int) -> list[int]:
    """X, H and Z of the source, X, H and Y of the result."""
    return [source.grid[0], height, source.grid[2], result.grid[0], out_height, result.grid[1]]


def x_first(*pairs: Sequence) -> list:
    """The numbers of pairs (y, x), each x before y; a single one counts for both."""
    return [number for pair in pairs for number in (pair[-1], pair[0])]


def of_three(numbers: Sequence, trivial: float) -> list:
    """Numbers of the spatial dimensions, that of x first, filled up to three."""
    return [*reversed(numbers), *[trivial] * (3 - len(numbers))]


def pooled(x: Sizes, kernel: Sizes, stride: Sizes | None, padding: Sizes | None,
           dilation: Sizes | None, ceil_mode: bool | None, count: int = 2) -> Sizes:
    """Sizes after pooling the last `count` dimensions; an empty stride is the kernel."""
    need_rank(x, (count + 1, count + 2), "self")
    if 0 in x[-count - 1:]:
        fail("self", f"expected channels and pixels, got sizes {list(x)}")
    kernel = per_dimension(kernel, count, "kernel_size", 1)
    stride = per_dimension(stride, count, "stride", 1) if stride else kernel
    padding = per_dimension(padding or (0,), count, "padding", 0)
    dilation = per_dimension(dilation or (1,), count, "dilation", 1)
    spatial = []
    for size, k, step, pad, dil in zip(x[-count:], kernel, stride, padding, dilation, strict=True):
        reach = dil * (k - 1) + 1
        if pad > k // 2:
            fail("padding", f"expected at most half of the kernel of {k}, got {pad}")
        free = size + 2 * pad - reach
        if ceil_mode:
            windows = -(-free // step) + 1
            # The last window has to begin within the input or its left padding.
            windows -= (windows - 1) * step >= size + pad
        else:
            windows = free // step + 1
        if windows < 1:
            fail("kernel_size", f"a window of {reach} is larger than the input of {size} with "
                 f"padding {pad}")
        spatial.append(windows)
    return (*x[:-count], *spatial)


def averaged_sizes(x, kernel, stride, padding, ceil_mode, _include_padding, divisor, count=2):
    """Sizes of means of windows, see `pooled`."""
    if divisor == 0:
        fail("divisor_override", "expected a number other than 0")
    if divisor is not None and divisor < 0:
        unsupported("divisor_override", f"{divisor}; vkrt divides by positive numbers")
    return (pooled(x, kernel, stride, padding, (1,), ceil_mode, count),)


def _pool(cx, shader: str, writes: Sequence[Tensor], x: Tensor, kernel: Sizes,
          stride: Sizes, padding: Sizes, *numbers: int) -> None:
    """Dispatches a kernel that slides windows; `numbers` are its last parameters."""
    order = image_order(x.rank)
    source = cx.read(x, order)
    results = [cx.write(tensor, order) for tensor in writes]
    params = [*image_sides(source, results[0], x.sizes[-2], writes[0].sizes[-2]),
              results[0].packed, *x_first(kernel, stride or kernel, padding or (0,)), *numbers]
    cx.dispatch(shader, params, results, [source], results[0].texels,
                loops=(kernel[-1] + 1) * kernel[0])


def _row_windows(node: Node, dim: int) -> Places | None:
    """Of the largest elements only: their indices count from the beginning of the whole input."""
    x, kernel, stride, padding, dilation = node.args[:5]
    if dim != x.rank - 2 or x.rank != 4:
        return None
    reach = (dilation or (1,))[0] * (kernel[0] - 1) + 1
    return with_residual(node, dim, [(x, Window(dim, (stride or kernel)[0], (padding or (0,))[0],
                                                reach))])


ROWS = sliding(_row_windows, PADDING)

_MAX_POOL2D = "self:T kernel_size:[i] stride:[i] padding:[i] dilation:[i] ceil_mode:b"
# The largest quantized number stands for the largest real number.
_MAX_DTYPES = replace(ONE_NUMBER, convert="own")


@op("aten.max_pool2d.default", _MAX_POOL2D, sizes=lambda *args: (pooled(*args),),
    dtypes=_MAX_DTYPES, kernels="", rows=ROWS)
@op("aten.max_pool2d_with_indices.default", _MAX_POOL2D, sizes=lambda *args: (pooled(*args),) * 2,
    dtypes=_MAX_DTYPES, further=(INT32,), rows=ROWS)
def max_pool2d(cx, node, x, kernel, stride, padding, dilation, _ceil_mode):
    """An index is y * W + x."""
    writes = [node.outs[0], *filter(cx.used, node.outs[1:])]
    shader = "max_pool2d_with_indices" if len(writes) > 1 else "max_pool2d"
    _pool(cx, shader, writes, x, kernel, stride, padding, *x_first(dilation or (1,)))


def _averaged_windows(node: Node, dim: int) -> Places | None:
    """Only where no window reaches beyond the input: the number of elements of a mean depends on
    that."""
    x, kernel, stride, padding, ceil_mode = node.args[:5]
    if dim != x.rank - 2 or any(padding or ()) or ceil_mode:
        return None
    return with_residual(node, dim, [(x, Window(dim, (stride or kernel)[0], 0, kernel[0]))])


@op("aten.avg_pool2d.default", "self:T kernel_size:[i] stride:[i] padding:[i] ceil_mode:b "
    "count_include_pad:b divisor_override:i?", sizes=averaged_sizes, dtypes=ONE_FLOAT,
    rows=RowRule(_averaged_windows))
def avg_pool2d(cx, node, x, kernel, stride, padding, _ceil_mode, include_padding, divisor):
    _pool(cx, "avg_pool2d", node.outs, x, kernel, stride, padding,
          divisor or (COUNT_PADDED if include_padding else COUNT_IMAGE))
