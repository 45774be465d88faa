"""Positions that are known when kernels run: of slices, and of rows of caches.

The position is an argument: an int, or a `vkrt.graph.symbols.RuntimeScalar`, to which the kernel
adds an element of one of the method's inputs (shaders/attention/position.glsl).
"""

from __future__ import annotations

import math
from collections.abc import Sequence, Set
from typing import Any

from vkrt.graph.symbols import RuntimeScalar
from vkrt.ops.caches import is_in_8_bits, row_texels, writers
from vkrt.ops.sizes import fail
from vkrt.ops.strided_copy import variant
from vkrt.work.tensor import Operand, Tensor, row_major


def position(cx, number: int) -> tuple[Operand, list[int]]:
    """The operand that a kernel reads a number from, and its two parameters for that."""
    if isinstance(number, RuntimeScalar):
        return cx.check_view(cx.operand(number.tensor)), [number.read.element, int(number)]
    return cx.vector(None, "int32"), [-1, number]


def need_position(number: int, most: int, name: str) -> None:
    """Refuses a known position beyond 0 to `most`; a `RuntimeScalar` is checked at each run."""
    if not isinstance(number, RuntimeScalar) and not 0 <= number <= most:
        fail(name, f"expected 0 to {most}, got {number}")


def slice_fits(args: Sequence[Any], places: Set[int]) -> bool:
    """Whether a slice (`aten.slice_copy.Tensor`) can begin where an input says: both of its ends
    move, in steps of one, along a dimension that is not the packed one."""
    tensor, dim, _start, _end, *step = args
    return (isinstance(tensor, Tensor) and isinstance(dim, int) and places == {2, 3}
            and -tensor.rank <= dim < tensor.rank and dim % tensor.rank != tensor.rank - 1
            and (not step or step[0] in (None, 1)))


def slice_at(cx, tensor: Tensor, out: Tensor, dim: int, start: int) -> None:
    """Makes `out` the indices from `start` on of a dimension, as many as `out` has."""
    source = cx.read(tensor, row_major(tensor.rank))
    result = cx.write(out)
    where, numbers = position(cx, start)
    inner = math.prod(out.sizes[dim + 1:-1])
    cx.dispatch("rows_from", [*result.grid, source.grid[0], tensor.sizes[dim], out.sizes[dim],
                              inner, *numbers], [result], [source, where], result.texels)


def write_rows(cx, caches: Sequence[Operand], tensors: Sequence[Tensor], start: int) -> None:
    """Replaces rows (indices of dimension 1) of caches [batch, rows, ..] from `start` on by those
    of tensors [batch, count, ..]: one cache, or two of the same sizes, of floats or in 8 bits."""
    sources = [cx.read(tensor, row_major(tensor.rank)) for tensor in tensors]
    where, numbers = position(cx, start)
    storages = {operand.storage.id for operand in (*caches, *sources)}
    in_8_bits = is_in_8_bits(caches[0])
    if len(caches) == 1 or (len(storages) == len(caches) + len(sources) and not in_8_bits):
        together, shader = [(caches, sources)], "rows_into" + "_two" * (len(caches) - 1)
    else:
        # One cache after the other: what is written to one may be read for the other, and in 8 bits
        # there is no kernel for two caches.
        together, shader = [([c], [s]) for c, s in zip(caches, sources, strict=True)], "rows_into"
    items, rows = caches[0].sizes[:2]
    invocations, loops = writers(sources[0], caches[0])
    for writes, reads in together:
        cx.dispatch(shader, [*sources[0].grid, row_texels(caches[0]), rows, tensors[0].sizes[1],
                             *numbers, items - 1], writes, [*reads, where], invocations,
                    loops=loops, dtype=variant(tensors[0].dtype, caches[0].dtype))


def write_rows_at(cx, cache: Operand, tensor: Tensor, places: Tensor) -> None:
    """Replaces rows of a cache [batch, rows, ..] by those of a tensor [batch, count, ..], each at
    the place that integers [batch, count] say."""
    source = cx.read(tensor, row_major(tensor.rank))
    count = tensor.sizes[1]
    invocations, loops = writers(source, cache)
    cx.dispatch("rows_at", [*source.grid, row_texels(cache), cache.sizes[1], count], [cache],
                [source, cx.flat(places)], invocations, loops=loops + count,
                dtype=variant(tensor.dtype, cache.dtype))
