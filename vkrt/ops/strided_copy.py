"""Moving elements: the affine walks of shaders/common/copy.glsl.

A walk lists, for every dimension of the destination from the outermost to the innermost in memory,
its size and the stride in the source (in elements of the source's padded memory).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from vkrt.errors import UnsupportedError
from vkrt.work.records import Prepack
from vkrt.work.tensor import Constant, Operand, itemsize, short_name

MAX_DIMS = 8

# A dtype of constants: the copy shaders read each element as two int32 and take the low one.
WIDE = "int64"

# ids of the copy shaders' parameters
DIMS, MODE, PACKED, FIRST, COUNT, RUN, GAP, OFFSET, BASE, WALK = 0, 1, 5, 6, 7, 8, 9, 10, 11, 15


@dataclass(frozen=True)
class Walk:
    """An affine walk over a source, see the module's docstring."""

    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    base: int = 0

    def collapsed(self) -> Walk:
        """Neighbouring dimensions joined where one stride serves both, sizes of 1 left out."""
        dims: list[tuple[int, int]] = []
        for size, stride in zip(self.sizes, self.strides):
            if size == 1:
                continue
            if dims and dims[-1][1] == size * stride:
                dims[-1] = (dims[-1][0] * size, stride)
            else:
                dims.append((size, stride))
        dims = dims or [(1, 1)]
        return Walk(tuple(d[0] for d in dims), tuple(d[1] for d in dims), self.base)

    def reach(self) -> tuple[int, int]:
        """The lowest and the highest element it reads, for a walk over at least one."""
        steps = [(size - 1) * stride for size, stride in zip(self.sizes, self.strides)]
        return (self.base + sum(step for step in steps if step < 0),
                self.base + sum(step for step in steps if step > 0))

    def check_within(self, elements: int, what: Any) -> None:
        """Makes sure that a walk stays within the first `elements` of what it goes over.

        Raises:
            AssertionError: it does not, which is a fault of vkrt, whatever a program says.
        """
        if 0 in self.sizes:
            return
        low, high = self.reach()
        if low < 0 or high >= elements:
            raise AssertionError(f"a copy of elements {low} to {high} of {elements}: {what}")


def walk_of(destination: Operand, source: Operand) -> Walk:
    """The walk that gives each element of the destination the one of the same logical index."""
    strides = source.strides()
    order = range(len(destination.sizes)) if destination.raw else destination.order
    return Walk(tuple(destination.sizes[d] for d in order), tuple(strides[d] for d in order))


def _mode(walk: Walk, packed: int) -> int:
    """The cheapest way of copy.glsl to fill one texel of a destination packed by `packed`."""
    inner = walk.sizes[-1]
    if not inner or not packed:
        # Without elements any will do.
        return 0
    whole_rows = inner % packed == 0
    if not whole_rows and not (inner % 4 == 0 and packed % inner == 0):
        return 0
    aligned = (walk.base % 4 == 0 and all(stride % 4 == 0 for stride in walk.strides[:-1])
               and (not whole_rows or inner == packed or packed % 4 == 0))
    return 2 if walk.strides[-1] == 1 and aligned else 1


def params(destination: Operand, source: Operand | None, walk: Walk, *, first: int = 0,
           count: int | None = None, run: int = 0, gap: int = 0, offset: int = 0) -> list[int]:
    """A walk and the part of the destination that it fills, in numbers. `shader_params` makes the
    copy shaders' parameters of these, and the host packs by them (`vkrt.memory.packing`).

    Sizes are those of the walk over elements, innermost first.

    Args:
        destination: what is written; `run`, `gap` and `offset` (in texels) select a part of it,
            as large as the walk says.
        source: whose grid addresses images; None for a buffer.
        first, count: the texels of the walk to do, all by default.
    """
    packed = destination.packed if not run else walk.sizes[-1]
    if packed % 4 and destination.packed % 4 == 0:
        raise AssertionError(f"a part of {packed} elements would pad texels of {destination}")
    original = walk
    walk = walk.collapsed()
    if len(walk.sizes) > MAX_DIMS:
        raise UnsupportedError(f"a copy over {len(walk.sizes)} dimensions {list(walk.sizes)}; at "
                               f"most {MAX_DIMS} that cannot be joined are possible")
    if count is None:
        outer = math.prod(original.sizes) // packed if packed else 0
        count = outer * -(-packed // 4)
    if first + count <= run:
        # It ends within its first run, and skips nothing.
        run = gap = 0
    dims: list[int] = []
    for size, stride in zip(reversed(walk.sizes), reversed(walk.strides)):
        dims += [size, stride]
    # Nothing reads the dimensions beyond `dims`.
    dims += [1, 0] * (MAX_DIMS - len(walk.sizes))
    return [len(walk.sizes), _mode(walk, packed), *destination.grid, packed, first, count,
            run or 1 << 30, gap, offset, walk.base, *(source.grid if source else (1, 1, 1)), *dims]


def shader_params(values: Sequence[int]) -> list[int]:
    """The copy shaders' parameters, in the order of their ids, from the numbers of `params`.

    In all modes but 0 a texel of the destination is found as a whole. The walk then becomes one
    over texels: its innermost dimension counts texels, with 4 times the stride of elements.
    """
    result = [*values, int(values[GAP] != 0)]
    mode, packed = values[MODE], values[PACKED]
    dims = [tuple(values[WALK + 2 * k:WALK + 2 * k + 2]) for k in range(values[DIMS])]
    (inner, stride), *outer = dims
    if packed % 4 and inner != packed:
        # Rows of the destination end with padding: texels are decoded row by row.
        inner, outer = packed, [(inner // packed, stride * packed), *outer]
    if not mode or len(outer) >= MAX_DIMS:
        result[MODE] = 0
        return result
    dims = [(-(-inner // 4), 4 * stride), *outer]
    result[DIMS], result[PACKED] = len(dims), inner
    result[WALK:WALK + 2 * len(dims)] = [value for dim in dims for value in dim]
    return result


def emit(cx, destination: Operand, source: Operand, walk: Walk, **part) -> None:
    """Adds the dispatch of a walk from `source` to `destination` (see `params`)."""
    values = params(destination, source, walk, **part)
    walk.check_within(4 * source.texels, source)
    _check_target(values, destination)
    to_image, from_image = destination.storage.is_image, source.storage.is_image
    shader, storage = "copy", None
    if to_image != from_image:
        shader, storage = ("copy_from_buffer" if to_image else "copy_to_buffer"), "texture3d"
    elif not to_image and cx.storage == "texture3d":
        storage = "buffer"
    cx.dispatch(shader, shader_params(values), [destination], [source], values[COUNT],
                dtype=variant(source.dtype, destination.dtype), storage=storage)


def _check_target(values: list[int], destination: Operand) -> None:
    """Makes sure that a walk's texels lie within what it fills (AssertionError)."""
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
    emit(cx, destination, source, walk_of(destination, source))


def prepack(constant: Constant, target: Operand, source: Operand, name: str,
            pitch: int | None = None) -> Prepack:
    """The record that brings a constant of the file, which has elements, into a weight.

    The slices are rows of the constant's outermost dimension, if that is the outermost dimension of
    the weight too and all elements belong to the weight. Otherwise the whole constant is one slice.

    Args:
        pitch: elements from one row of the constant to the next; None where all elements belong to
            the weight.
    """
    walk = walk_of(target, source)
    if pitch is not None:
        if target.order[0] != 0:
            raise AssertionError(f"{target}: rows that are {pitch} elements apart go inwards")
        walk = Walk(walk.sizes, (pitch, *walk.strides[1:]))
    rows = 1
    if target.order and target.order[0] == 0 and len(target.order) > 1 and pitch is None:
        rows = target.sizes[0]
    if constant.dtype == WIDE:
        walk = Walk(walk.sizes, tuple(2 * stride for stride in walk.strides))
        source = replace(source, dtype="int32")
    walk.check_within(constant.nbytes // itemsize(source.dtype), f"{constant} for {target}")
    image = target.storage.is_image
    shader = (f"copy_from_buffer.texture3d.{variant(source.dtype, target.dtype)}" if image else
              f"copy.buffer.{variant(source.dtype, target.dtype)}")
    return Prepack(constant=constant, target=target, shader=shader,
                   params=tuple(params(target, None, walk)),
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
