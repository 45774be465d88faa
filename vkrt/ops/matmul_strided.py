"""Products of batches of matrices that are strided views of other tensors.

Attention's queries, keys and values are parts of the result of one layer, and its own result is
read as rows of all heads. Where these tensors lie at regular distances, nothing is copied for the
products: shaders/matmul/places.glsl says how kernels find the rows. A second matrix that lies row
by row is not copied to its transpose either.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from vkrt.graph.graph import Node
from vkrt.ops.strided import Dims, Strided, turned
from vkrt.ops.strided_copy import StridedDim, joined
from vkrt.work.tensor import ITEMSIZE, NOWHERE, Operand, Tensor, column_major, row_major

# What `lies` is in places.glsl
APART, ACROSS, ACROSS_RAGGED = 1, 2, 3

# How many parameters places.glsl has
PLACES = 15


@dataclass(frozen=True)
class Apart:
    """Two matrices, or batches of them, and where their product goes.

    Attributes:
        source, matrix: what the kernel binds.
        texels: of the summed dimension.
        columns: of the result.
        params: those of places.glsl.
    """

    source: Operand
    matrix: Operand
    texels: int
    columns: int
    params: tuple[int, ...]


def apart(cx, a: Tensor, b: Tensor, result: Dims | None = None) -> Apart | None:
    """How a kernel reads two tensors [.., M, K] and [.., K, N] in place, and writes the product's
    rows as `rows_in` says, or one behind the other. None where it does not, or where both are whole
    and already lie as kernels want them."""
    if cx.storage == "texture3d" or a.sizes[-2] < 2 or cx.is_constant(a) or cx.is_constant(b):
        return None
    source, matrix = first_factor(cx, a), second_factor(cx, b)
    is_across = not has_lines(matrix)
    if result is None and not is_across and all(map(_is_whole, (source, matrix))):
        return None
    whole = Operand(NOWHERE, (*a.sizes[:-1], b.sizes[-1]), a.dtype, row_major(a.rank))
    return placed(source, matrix, Strided.of(whole) if result is None else Strided(whole, result),
                  is_across)


def first_factor(cx, tensor: Tensor) -> Strided:
    """A tensor [.., M, K] as kernels read it row by row: in place, or else a copy."""
    found = cx.strided(tensor)
    if found is not None and _has_rows(found, -2):
        return found
    return Strided.of(cx.read(tensor, row_major(tensor.rank)))


def second_factor(cx, tensor: Tensor) -> Strided:
    """A tensor [.., K, N] as kernels read it along either of these dimensions: in place, or else a
    copy."""
    found = cx.strided(tensor)
    if found is not None and (_has_rows(found, -2) or has_lines(found)):
        return found
    return Strided.of(cx.read(tensor, column_major(tensor.rank)))


def has_lines(matrix: Strided) -> bool:
    """Whether the lines of a second factor lie along the dimension that is summed."""
    return _has_rows(matrix, -1)


def placed(source: Strided, matrix: Strided, result: Strided, is_across: bool) -> Apart | None:
    """How a kernel reads two factors, or parts of them, and where it puts their product, of rows of
    whole texels; None where it does not."""
    batches = _batches([where.dims[:-2] for where in (source, matrix, result)])
    if batches is None:
        return None
    inner, (of_source, of_matrix, of_result) = batches
    depth = source.sizes[-1]
    lies = APART if not is_across else ACROSS_RAGGED if depth % 4 else ACROSS
    params = (inner, source.base // 4, *of_source, _step(source.dims[-2]),
              matrix.base // 4, *of_matrix, _step(matrix.dims[-2 if is_across else -1]),
              result.base // 4, *of_result, _step(result.dims[-2]), depth, lies)
    return Apart(source.source, matrix.source, -(-depth // 4), matrix.sizes[-1], params)


def some_channels(cx, weight: Tensor, source: Operand, first: int, column: int = 0,
                  columns: int | None = None) -> tuple[Operand, Apart | None]:
    """The matrix of a weight [columns, inputs, 1..], and how a kernel finds some of its inputs (the
    attribute `INPUTS`) or some of its columns (`OUTPUTS`) in it.

    Kernels of images find no part of a weight: there the part is a weight of its own.

    Args:
        source: packed along its inputs, which are whole texels.
        first: the first of the inputs.
        column: the first of the columns.
        columns: how many of them; None for all.
    """
    inputs, depth = weight.sizes[1], source.packed
    columns = weight.sizes[0] if columns is None else columns
    start = column * inputs + first
    if cx.storage != "texture3d":
        matrix = cx.matrix(weight, (0, *range(2, weight.rank), 1), 1)
        texels = -(-depth // 4)
        params = (1, 0, 0, 0, texels, start // 4, 0, 0, inputs // 4, 0, 0, 0, -(-columns // 4),
                  depth, APART)
        return matrix, Apart(source, matrix, texels, columns, params)
    constant = weight.constant
    assert constant is not None  # nodes with these attributes have a constant weight
    each = ITEMSIZE[constant.dtype]
    own = replace(weight, sizes=(columns, depth), constant=replace(
        constant, offset=constant.offset + start * each, key=None,
        nbytes=((columns - 1) * inputs + depth) * each))
    return cx.weight(own, (0, 1), 1, pitch=inputs), None


def rows_in(sizes: Sequence[int], views: Sequence[Node]) -> Dims | None:
    """How the rows of a product [.., M, N], whole texels, lie in the row-major result of views of
    it: the dimensions of a `Strided`; None where they are not regular."""
    rank = len(sizes)
    whole = Strided.of(Operand(NOWHERE, tuple(sizes), "float32", row_major(rank)))
    last = views[-1].outs[0].sizes
    found = turned(whole, views)
    if found is None or 0 in sizes or sizes[-1] % 4 or not last or last[-1] % 4:
        return None
    # Each factor's stride in the product, size, and stride in the result of the views
    pairs, stride = [], 1
    bounds = [factors[0][1] for factors in whole.dims if factors]
    for size, own in reversed([*_divided((f for dim in found.dims for f in dim), bounds)]):
        pairs.append((own, size, stride))
        stride *= size
    pairs.sort(reverse=True)
    dims: list[tuple[StridedDim, ...]] = []
    for own, size in zip((factors[0][1] if factors else 0 for factors in whole.dims), sizes):
        inner = [(count, step) for at, count, step in pairs if own <= at < own * size]
        if math.prod(count for count, _ in inner) != size:
            return None
        dims.append(joined(inner))
    along, across = dims[-1], dims[-2]
    if along not in ((), ((sizes[-1], 1),)) or len(across) > 1:
        return None
    return tuple(dims)


def _divided(factors: Iterable[StridedDim], bounds: Sequence[int]) -> Iterator[StridedDim]:
    """Factors, split where they extend over one of the distances `bounds` (the largest first)."""
    for size, stride in factors:
        for bound in bounds:
            if stride < bound < size * stride and not bound % stride and not size * stride % bound:
                yield size * stride // bound, bound
                size = bound // stride
        yield size, stride


def _has_rows(where: Strided, dim: int) -> bool:
    """Whether `dim`, of the last two dimensions, counts rows of whole texels along the other."""
    other = -3 - dim
    across, along = where.dims[dim], where.dims[other]
    whole = where.source.order[-1] == len(where.source.sizes) + other and _is_whole(where)
    size = where.sizes[other]
    return (len(across) <= 1 and len(along) <= 1 and (size % 4 == 0 or whole)
            and (not along or along[0][1] == 1) and (bool(along) or whole)
            and where.base % 4 == 0
            and all(stride % 4 == 0 for dim in (*where.dims[:-2], across) for _, stride in dim))


def _is_whole(where: Strided) -> bool:
    """Whether it is its whole operand, in the operand's own layout."""
    return where == Strided.of(where.source)


def _step(dim: tuple[StridedDim, ...]) -> int:
    return dim[0][1] // 4 if dim else 0


def _batches(operands: Sequence[Dims]) -> tuple[int, list[tuple[int, int]]] | None:
    """How many inner batches there are for each outer one, and for each operand the strides of
    outer and inner batches in texels; None where two strides are not enough."""
    found = [joined(factor for dim in dims for factor in dim) for dims in operands]
    inner = min((factors[-1][0] for factors in found if factors), default=1)
    result = []
    for factors in found:
        if len(factors) == 1 and factors[0][0] != inner:
            size, stride = factors[0]
            if size % inner:
                return None
            factors = (size // inner, stride * inner), (inner, stride)
        if len(factors) > 2 or (factors and factors[-1][0] != inner):
            return None
        outer = factors[0][1] // 4 if len(factors) == 2 else 0
        result.append((outer, factors[-1][1] // 4 if factors else 0))
    return inner, result
