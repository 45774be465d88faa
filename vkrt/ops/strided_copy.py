"""Strided copies: the kernels of shaders/common/copy.glsl, which move elements.

A copy goes over the destination in the order of its memory. It is described by the size of every
dimension, the outermost first, and by the dimension's stride in the source, in elements of the
source's padded memory.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

from vkrt.errors import UnsupportedError
from vkrt.ops.copy_params import (
    BASE,
    COUNT,
    DIMS,
    FIRST,
    FIRST_DIM,
    GAP,
    MODE,
    OFFSET,
    PACKED,
    RUN,
)
from vkrt.ops.copy_ranges import in_ranges
from vkrt.work.records import Prepack
from vkrt.work.tensor import Constant, Operand, itemsize, short_name

MAX_DIMS = 8

# A dtype of constants: the copy shaders read each element as two int32 and take the low one.
WIDE = "int64"

# Size and stride
StridedDim = tuple[int, int]


def joined(dims: Iterable[StridedDim]) -> tuple[StridedDim, ...]:
    """Dimensions without those of size 1; neighbours that are contiguous become one."""
    result: list[StridedDim] = []
    for size, stride in dims:
        if size == 1:
            continue
        if result and result[-1][1] == size * stride:
            result[-1] = result[-1][0] * size, stride
        else:
            result.append((size, stride))
    return tuple(result)


def _check_source(dims: Sequence[StridedDim], base: int, elements: int, what: Any) -> None:
    """An AssertionError where a copy reads beyond the first `elements` of a source, which is a
    fault of vkrt, whatever a program says."""
    if any(size == 0 for size, _ in dims):
        return
    ends = [(size - 1) * stride for size, stride in dims]
    low, high = (base + sum(bound(end, 0) for end in ends) for bound in (min, max))
    if low < 0 or high >= elements:
        raise AssertionError(f"a copy of elements {low} to {high} of {elements}: {what}")


def _dims_between(destination: Operand, source: Operand) -> tuple[StridedDim, ...]:
    """The copy that gives each element of the destination the one of the same logical index."""
    strides = source.strides()
    order = range(len(destination.sizes)) if destination.raw else destination.order
    return tuple((destination.sizes[d], strides[d]) for d in order)


def _mode(dims: Sequence[StridedDim], base: int, packed: int) -> int:
    """The cheapest way of copy.glsl to fill one texel of a destination packed by `packed`."""
    inner, inner_stride = dims[-1]
    if not inner or not packed:
        # Without elements any will do.
        return 0
    whole_rows = inner % packed == 0
    if not whole_rows and not (inner % 4 == 0 and packed % inner == 0):
        return 0
    aligned = (base % 4 == 0 and all(stride % 4 == 0 for _, stride in dims[:-1])
               and (not whole_rows or inner == packed or packed % 4 == 0))
    return 2 if inner_stride == 1 and aligned else 1


def params(destination: Operand, source: Operand | None, dims: Sequence[StridedDim], base: int = 0,
           *, first: int = 0, count: int | None = None, run: int = 0, gap: int = 0,
           offset: int = 0) -> list[int]:
    """A copy, and the part of the destination that it fills, in numbers. `shader_params` makes the
    copy shaders' parameters of these, and the host packs by them (`vkrt.memory.packing`).

    Sizes are those of the copy over elements, innermost first.

    Args:
        destination: what is written; `run`, `gap` and `offset` (in texels) select a part of it,
            as large as the dimensions say.
        source: whose grid addresses images; None for a buffer.
        base: the first element.
        first, count: the texels to do, all by default.
    """
    packed = destination.packed if not run else dims[-1][0]
    if packed % 4 and destination.packed % 4 == 0:
        raise AssertionError(f"a part of {packed} elements would pad texels of {destination}")
    if count is None:
        outer = math.prod(size for size, _ in dims) // packed if packed else 0
        count = outer * -(-packed // 4)
    dims = joined(dims) or ((1, 1),)
    if len(dims) > MAX_DIMS:
        raise UnsupportedError(f"a copy over {len(dims)} dimensions {[size for size, _ in dims]}; "
                               f"at most {MAX_DIMS} that cannot be joined are possible")
    if first + count <= run:
        # It ends within its first run, and skips nothing.
        run = gap = 0
    # Nothing reads the dimensions beyond the copy's.
    padded = [*reversed(dims), *[(1, 0)] * (MAX_DIMS - len(dims))]
    return [len(dims), _mode(dims, base, packed), *destination.grid, packed, first, count,
            run or 1 << 30, gap, offset, base, *(source.grid if source else (1, 1, 1)),
            *chain.from_iterable(padded)]


def shader_params(values: Sequence[int]) -> list[int]:
    """The copy shaders' parameters, in the order of their ids, from the numbers of `params`.

    In all modes but 0 a texel of the destination is found as a whole. The copy then goes over
    texels: its innermost dimension counts texels, with 4 times the stride of elements.
    """
    result = [*values, int(values[GAP] != 0)]
    mode, packed = values[MODE], values[PACKED]
    dims = [tuple(values[FIRST_DIM + 2 * k:FIRST_DIM + 2 * k + 2]) for k in range(values[DIMS])]
    (inner, stride), *outer = dims
    if packed % 4 and inner != packed:
        # Rows of the destination end with padding: texels are decoded row by row.
        inner, outer = packed, [(inner // packed, stride * packed), *outer]
    if not mode or len(outer) >= MAX_DIMS:
        result[MODE] = 0
        return result
    dims = [(-(-inner // 4), 4 * stride), *outer]
    result[DIMS], result[PACKED] = len(dims), inner
    result[FIRST_DIM:FIRST_DIM + 2 * len(dims)] = chain.from_iterable(dims)
    return result


def copy_strided(cx, destination: Operand, source: Operand, dims: Sequence[StridedDim],
                 base: int = 0, **part: int) -> None:
    """Adds the dispatch of a copy from `source` to `destination` (see `params`)."""
    values = params(destination, source, dims, base, **part)
    _check_source(dims, base, 4 * source.texels, source)
    _check_target(values, destination)
    to_image, from_image = destination.storage.is_image, source.storage.is_image
    shader, storage = "copy", None
    if to_image != from_image:
        shader, storage = ("copy_from_buffer" if to_image else "copy_to_buffer"), "texture3d"
    elif not to_image and cx.storage == "texture3d":
        storage = "buffer"
    dtype = variant(source.dtype, destination.dtype)
    is_between_buffers = not to_image and not from_image
    for numbers, written, read in (in_ranges(values, destination, source, cx.target)
                                   if is_between_buffers else ((values, destination, source),)):
        cx.dispatch(shader, shader_params(numbers), [written], [read], numbers[COUNT],
                    dtype=dtype, storage=storage)


def _check_target(values: list[int], destination: Operand) -> None:
    """Makes sure that the texels lie within what they fill (AssertionError)."""
    last = values[FIRST] + values[COUNT] - 1
    if last < 0:
        return
    place = values[OFFSET] + last + last // values[RUN] * values[GAP]
    if values[OFFSET] < 0 or place >= destination.texels:
        raise AssertionError(f"a copy to texel {place} of {destination}")


def variant(source: str, destination: str) -> str:
    """The dtype part of a shader variant that reads one dtype and writes another."""
    a, b = short_name(source), short_name(destination)
    return a if a == b else f"{a}_{b}"


def copy(cx, destination: Operand, source: Operand) -> None:
    """Adds the dispatches that give the destination the source's elements, index by index."""
    copy_strided(cx, destination, source, _dims_between(destination, source))


def prepack(constant: Constant, target: Operand, source: Operand, name: str,
            pitch: int | None = None) -> Prepack:
    """The record that brings a constant of the file, which has elements, into a weight. The slices
    are rows of the constant's outermost dimension, if that is the outermost dimension of the weight
    too and all elements belong to the weight. Otherwise the whole constant is one slice; with a
    pitch its rows are so many elements apart."""
    dims = _dims_between(target, source)
    if pitch is not None:
        if target.order[0] != 0:
            raise AssertionError(f"{target}: rows that are {pitch} elements apart go inwards")
        dims = ((dims[0][0], pitch), *dims[1:])
    rows = 1
    if target.order and target.order[0] == 0 and len(target.order) > 1 and pitch is None:
        rows = target.sizes[0]
    if constant.dtype == WIDE:
        dims = tuple((size, 2 * stride) for size, stride in dims)
        source = replace(source, dtype="int32")
    _check_source(dims, 0, constant.nbytes // itemsize(source.dtype), f"{constant} for {target}")
    image = target.storage.is_image
    shader = (f"copy_from_buffer.texture3d.{variant(source.dtype, target.dtype)}" if image else
              f"copy.buffer.{variant(source.dtype, target.dtype)}")
    return Prepack(constant=constant, target=target, shader=shader,
                   params=tuple(params(target, None, dims)),
                   row_bytes=-(-constant.nbytes // rows), rows=rows, name=name)


def slice_params(record: Prepack, first_row: int, rows: int) -> list[int]:
    """The shader's parameters for some of a prepack's rows, staged from its buffer's start."""
    values = list(record.params)
    texels = record.target.texels // record.rows
    elements = math.prod(record.target.sizes) // record.rows
    if record.constant.dtype == WIDE:
        elements *= 2
    values[FIRST] = first_row * texels
    values[COUNT] = rows * texels
    values[BASE] -= first_row * elements
    return shader_params(values)
