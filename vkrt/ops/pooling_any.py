"""Pooling over one or three spatial dimensions, and adaptive pooling, whose windows just cover the
source. Pooling over two dimensions with windows of one size is in `vkrt.ops.pooling`.

Tensors lie channels-last. Spatial dimensions that a tensor lacks have one element.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

from vkrt.ops.dtypes import INT32, ONE_FLOAT
from vkrt.ops.pooling import COUNT_IMAGE, COUNT_PADDED, averaged_sizes, of_three, pooled
from vkrt.ops.reduction import lower_reduction
from vkrt.ops.registry import op
from vkrt.ops.sizes import Sizes, at_least, fail, need_rank, per_dimension, unsupported
from vkrt.work.tensor import Tensor

# A window's place times a side of the source has to fit into 32 bits.
MOST = (1 << 31) - 1


def _order(rank: int, count: int) -> tuple[int, ...]:
    """Channels-last order of [N, C, spatial..] or [C, spatial..], `count` spatial dimensions."""
    channel = rank - count - 1
    return (*range(channel), *range(channel + 1, rank), channel)


def _pool(cx, shader: str, writes: Sequence[Tensor], x: Tensor, count: int, window: Sequence[int],
          loops: int) -> None:
    """Dispatches a kernel of pool.glsl; `window` are its parameters from id 9 on."""
    order = _order(x.rank, count)
    source = cx.read(x, order)
    results = [cx.write(tensor, order) for tensor in writes]
    sides, out_sides = (of_three(t.sizes[-count:], 1) for t in (x, writes[0]))
    cx.dispatch(shader, [*sides, source.grid[2], *out_sides, results[0].grid[1],
                         results[0].packed, *window], results, [source], results[0].texels,
                loops=loops)


def _largest(cx, node, x: Tensor, count: int, window: Sequence[int], loops: int) -> None:
    writes = [node.outs[0], *filter(cx.used, node.outs[1:])]
    _pool(cx, "pool_max_with_indices" if len(writes) > 1 else "pool_max", writes, x, count, window,
          loops)


# Windows of one size

_AVERAGE = ("self:T kernel_size:[i] stride:[i]? padding:[i]? ceil_mode:b? count_include_pad:b? "
            "divisor_override:i?")
_LARGEST = "self:T kernel_size:[i] stride:[i]? padding:[i]? dilation:[i]? ceil_mode:b?"


def _window(count: int, kernel: Sizes, stride: Sizes | None, padding: Sizes | None,
            dilation: Sizes | None = None) -> list[int]:
    numbers = [0]
    for given, trivial in ((kernel, 1), (stride or kernel, 1), (padding or (0,), 0),
                           (dilation or (1,), 1)):
        numbers += of_three(per_dimension(given, count, "kernel_size", trivial), trivial)
    return numbers


def _declare(count: int) -> None:
    def largest_sizes(x, kernel, stride, padding, dilation, ceil_mode):
        return (pooled(x, kernel, stride, padding, dilation, ceil_mode, count),)

    @op(f"aten.max_pool{count}d.default", _LARGEST, sizes=largest_sizes, dtypes=ONE_FLOAT)
    @op(f"aten.max_pool{count}d_with_indices.default", _LARGEST,
        sizes=lambda *args: largest_sizes(*args) * 2, dtypes=ONE_FLOAT, further=(INT32,),
        convert="own")
    def _max_pool(cx, node, x, kernel, stride, padding, dilation, _ceil_mode):
        """An index is (z * H + y) * W + x."""
        _largest(cx, node, x, count, _window(count, kernel, stride, padding, dilation),
                 _loops(kernel, count))

    @op(f"aten.avg_pool{count}d.default", _AVERAGE,
        sizes=partial(averaged_sizes, count=count), dtypes=ONE_FLOAT)
    def _avg_pool(cx, node, x, kernel, stride, padding, _ceil_mode, include_padding, divisor):
        among = COUNT_IMAGE if include_padding is False else COUNT_PADDED
        _pool(cx, "pool_mean", node.outs, x, count,
              [*_window(count, kernel, stride, padding), divisor or among], _loops(kernel, count))


def _loops(kernel: Sizes, count: int) -> int:
    return math.prod(n + 1 for n in per_dimension(kernel, count, "kernel_size", 1))


for _count in (1, 3):
    _declare(_count)


# Windows that cover the source: the parameters of pool.glsl for them
_COVERING = [1, *[1] * 6, *[0] * 3, *[1] * 3]


def _adaptive_sizes(x: Sizes, size: Sizes, count: int) -> Sizes:
    need_rank(x, (count + 1, count + 2), "self")
    if len(size) != count:
        fail("output_size", f"expected {count} numbers, got {list(size)}")
    if 0 in x[-count - 1:]:
        fail("self", f"expected channels and pixels, got sizes {list(x)}")
    for side, out in zip(x[-count:], size, strict=True):
        at_least(out, 1, "output_size")
        if (side + 1) * (out + 1) > MOST:
            unsupported("output_size", f"{out} windows over {side} elements")
    return (*x[:-count], *size)


def _declare_adaptive(count: int) -> None:
    @op(f"aten.adaptive_max_pool{count}d.default", "self:T output_size:[i]",
        sizes=lambda x, size: (_adaptive_sizes(x, size, count),) * 2, dtypes=ONE_FLOAT,
        further=(INT32,), convert="own")
    def _max_pool(cx, node, x, _size):
        if _is_all(node.outs[0], count) and not cx.used(node.outs[1]):
            _reduce(cx, node.outs[0], x, count, "MAX")
            return
        _largest(cx, node, x, count, _COVERING, _adaptive_loops(x, node.outs[0], count))

    names = {1: "aten.adaptive_avg_pool1d.default"}.get(
        count, f"aten._adaptive_avg_pool{count}d.default aten.adaptive_avg_pool{count}d.default")

    @op(names, "self:T output_size:[i]",
        sizes=lambda x, size: (_adaptive_sizes(x, size, count),), dtypes=ONE_FLOAT)
    def _avg_pool(cx, node, x, _size):
        out = node.outs[0]
        if _is_all(out, count):
            _reduce(cx, out, x, count, "SUM", math.prod(x.sizes[-count:]))
            return
        _pool(cx, "pool_mean", node.outs, x, count, [*_COVERING, COUNT_IMAGE],
              _adaptive_loops(x, out, count))


def _is_all(out: Tensor, count: int) -> bool:
    """Whether one window covers all: then it is done as a reduction, which splits long rows."""
    return math.prod(out.sizes[-count:]) == 1


def _reduce(cx, out: Tensor, x: Tensor, count: int, function: str, divisor: float = 1.0) -> None:
    lower_reduction(cx, x, out, range(x.rank - count, x.rank), True, function, divisor)


def _adaptive_loops(x: Tensor, out: Tensor, count: int) -> int:
    return math.prod(-(-side // n) + 2 for side, n in zip(x.sizes[-count:], out.sizes[-count:],
                                                          strict=True))


for _count in (1, 2, 3):
    _declare_adaptive(_count)
