"""Resampling of images, lines and volumes to other sizes: nearest, linear, cubic, antialiased.

Tensors are [N, C, spatial..] and lie channels-last. Each side of the result is made of the same
side of the source alone, by a function of the distance (shaders/pool/resample.comp). Nearest and
bilinear resampling of images, the most frequent in networks, has faster kernels of its own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from vkrt.graph.graph import Node
from vkrt.ops.dtypes import ONE, ONE_FLOAT, DtypeRule
from vkrt.ops.pooling import image_sides, of_three, x_first
from vkrt.ops.registry import op
from vkrt.ops.rows import Places, RowRule, Rows, Window
from vkrt.ops.sizes import Sizes, fail, need_rank
from vkrt.shader import opcode
from vkrt.work.tensor import Operand, Tensor, channels_last

# Operator names: of rounding ones with their opcodes, of linear ones by the number of sides
_ROUNDED = {"upsample_nearest{}d": "NEAREST", "_upsample_nearest_exact{}d": "NEAREST_EXACT"}
_LINEAR = {1: "upsample_linear1d", 2: "upsample_bilinear2d", 3: "upsample_trilinear3d"}
# Kernels of images. They take the steps along both sides; the linear one also `align_corners`.
_OF_IMAGES = {"NEAREST": "upsample_nearest2d", "LINEAR": "upsample_bilinear2d"}
# Nearest images may be of bytes.
_PIXELS = DtypeRule(lambda args: (ONE if args[0].dtype == "uint8" else ONE_FLOAT).allowed(args),
                    "one")
# With this step every element of the result but the first lies behind any source.
_LONGEST_STEP = float(1 << 31)
# Instead of a step: the side stays as it is.
_KEPT = -1.0


def _resampled(x: Sizes, size: Sizes | None, scales: Sequence[float] | None,
               count: int) -> tuple[Sizes]:
    """Sizes of a tensor with its last `count` dimensions resampled; `size` or `scales` is given."""
    need_rank(x, count + 2, "input")
    name, given = ("scale_factors", scales) if size is None else ("output_size", size)
    if given is None or None not in (size, scales):
        fail("output_size", "expected either it or scale_factors")
    if len(given) != count:
        fail(name, f"expected {count} numbers, got {list(given)}")
    if not all(map(math.isfinite, given)):
        fail(name, f"expected finite numbers, got {list(given)}")
    if size is None:
        size = tuple(int(n * scale) for n, scale in zip(x[2:], given, strict=True))
    if min(size) < 1 or 0 in x[1:]:
        fail(name, f"resamples sizes {list(x)} to {list(size)}")
    return ((*x[:2], *size),)


def _step(size: int, out_size: int, factor: float | None, align: bool) -> float:
    """Source elements per element of the result, as torch's UpSample.h computes it, or `_KEPT`."""
    if align:
        step = (size - 1) / (out_size - 1) if out_size > 1 else 0.0
    elif factor is not None and factor > 0:
        step = min(1.0 / factor, _LONGEST_STEP)
    else:
        step = size / out_size
    return _KEPT if step == 1.0 and out_size == size else step


def _resample(cx, x: Tensor, out: Tensor, factors: Sequence[float | None], function: str,
              align: bool = False, antialias: bool = False) -> None:
    """Dispatches the kernel; with `antialias` weights reach far, and each changed side is one
    dispatch."""
    sides, out_sides = x.sizes[2:], out.sizes[2:]
    of_images = len(sides) == 2 and function in _OF_IMAGES and not antialias
    # Multiples of the size of a side for which torch ignores its factor.
    multiples = (1,) if antialias else (1, 2) if of_images and function == "NEAREST" else ()
    steps = [_step(n, out_n, None if out_n in (n * m for m in multiples) else factor, align)
             for n, out_n, factor in zip(sides, out_sides, factors, strict=True)]
    order = channels_last(x.rank)
    source = cx.read(x, order)
    if of_images:
        result = cx.write(out, order)
        cx.dispatch(_OF_IMAGES[function],
                    [*image_sides(source, result, sides[0], out_sides[0]),
                     *x_first([abs(step) for step in steps]), *[align] * (function == "LINEAR")],
                    [result], [source], result.texels)
        return
    changed = [side for side, step in enumerate(steps) if step != _KEPT]
    # The innermost side is first, as in torch.
    stages = [[side] for side in reversed(changed)] if antialias and changed else [changed]
    for number, stage in enumerate(stages, 1):
        now = tuple(out_sides[side] if side in stage else n for side, n in enumerate(sides))
        if number == len(stages):
            result = cx.write(out, order)
        else:
            result = cx.temporary((*x.sizes[:2], *now), out.dtype, order)
        _dispatch(cx, source, result, sides, now,
                  [step if side in stage else _KEPT for side, step in enumerate(steps)],
                  [opcode("resample", function), align, antialias])
        source, sides = result, now


def _dispatch(cx, source: Operand, result: Operand, sides: Sizes, out_sides: Sizes,
              steps: Sequence[float], how: Sequence[int]) -> None:
    function, align, antialias = how
    taps = math.prod(2 * math.ceil(2 * max(min(step, side), 1)) + 1 if antialias else 4
                     for side, step in zip(sides, steps, strict=True) if step != _KEPT)
    cx.dispatch("resample", [*of_three(sides, 1), source.grid[2], *of_three(out_sides, 1),
                             result.grid[1], function, *of_three(steps, _KEPT), align, antialias],
                [result], [source], result.texels, loops=taps)


def _times(size: int, out_size: int) -> int | None:
    """How many times `out_size` is as long as `size`, if that is a power of two; else None."""
    times, rest = divmod(out_size, max(size, 1))
    return times if times and not rest and times & (times - 1) == 0 else None


def _declare(name: str, count: int, function: str, antialias: bool = False) -> None:
    """Declares an operator by the sizes of its result, and if delegates have it also by factors."""
    aligns = not function.startswith("NEAREST")
    align = " align_corners:b" if aligns else ""
    dtypes = _PIXELS if (function, count) == ("NEAREST", 2) else ONE_FLOAT
    scales = " ".join(f"scales_{side}:f?" for side in "dhw"[-count:])

    @op(f"aten.{name}.default", f"self:T output_size:[i]{align} {scales}",
        sizes=lambda x, size, *_: _resampled(x, size, None, count), dtypes=dtypes)
    def _by_sizes(cx, node, x, _size, *numbers):
        _resample(cx, x, node.outs[0], numbers[aligns:], function, aligns and numbers[0], antialias)

    if function not in _OF_IMAGES or count != 2 or antialias:
        return

    def row_windows(node: Node, dim: int) -> Places | None:
        """Of the nearest rows, if all sides grow by powers of two: a kernel then finds the same
        rows by the sizes as by the factors."""
        x, out = node.args[0], node.outs[0]
        unit = out.sizes[dim] // x.sizes[dim] if dim == 2 and x.sizes[dim] else 0
        times = [_times(n, out_n) for n, out_n in zip(x.sizes[2:], out.sizes[2:], strict=True)]
        if function != "NEAREST" or not unit or None in times:
            return None
        return [(x, Window(dim, unit=unit))]

    def strip(node: Node, dim: int, rows: Rows) -> Node:
        sizes = list(node.outs[0].sizes[2:])
        sizes[dim - 2] = rows[1] - rows[0]
        return replace(node, args=(node.args[0], sizes, None))

    @op(f"aten.{name}.vec", f"input:T output_size:[i]?{align} scale_factors:[f]?",
        sizes=lambda x, size, *numbers: _resampled(x, size, numbers[-1], count), dtypes=dtypes,
        rows=RowRule(row_windows, strip))
    def _by_either(cx, node, x, _size, *numbers):
        _resample(cx, x, node.outs[0], numbers[-1] or (None,) * count, function,
                  aligns and numbers[0], antialias)


for _count in (1, 2, 3):
    for _name, _function in _ROUNDED.items():
        _declare(_name.format(_count), _count, _function)
    _declare(_LINEAR[_count], _count, "LINEAR")
_declare("upsample_bicubic2d", 2, "CUBIC")
_declare("_upsample_bilinear2d_aa", 2, "LINEAR", antialias=True)
_declare("_upsample_bicubic2d_aa", 2, "CUBIC", antialias=True)
