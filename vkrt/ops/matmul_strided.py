"""Products of batches of matrices that lie apart in the memory of other tensors.

Attention's queries, keys and values are parts of the result of one layer, and its own result is
read as rows of all heads. Where all of that lies at regular distances, nothing is copied for the
products: shaders/matmul/places.glsl says how kernels find the rows. Nor is a second matrix that
lies row by row copied the other way round.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from vkrt.graph.graph import Node
from vkrt.ops.strided import Dims, Factor, Strided, joined, turned
from vkrt.work.tensor import ITEMSIZE, NOWHERE, Operand, Tensor, row_major

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
    """How a kernel reads two tensors [.., M, K] and [.., K, N] where they lie; None where it does
    not, or where both are whole and lie as kernels want them anyhow.

    Args:
        result: how the product's rows lie, if not one behind the other (`rows_in`).
    """
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
    """Where a tensor [.., M, K] lies that kernels read row by row: itself, or else a copy."""
    found = cx.strided(tensor)
    if found is not None and _has_rows(found, -2):
        return found
    return Strided.of(cx.read(tensor, row_major(tensor.rank)))


def second_factor(cx, tensor: Tensor) -> Strided:
    """The same of a tensor [.., K, N] that kernels read along either of these dimensions."""
    found = cx.strided(tensor)
    if found is not None and (_has_rows(found, -2) or has_lines(found)):
        return found
    rank = tensor.rank
    return Strided.of(cx.read(tensor, (*range(rank - 2), rank - 1, rank - 2)))


def has_lines(matrix: Strided) -> bool:
    """Whether the lines of a second factor lie along the dimension that is summed."""
    return _has_rows(matrix, -1)


def placed(source: Strided, matrix: Strided, result: Strided, is_across: bool) -> Apart | None:
    """How a kernel reads two factors, or parts of them, and where it puts their product; None where
    it does not.

    Args:
        result: of rows of whole texels.
    """
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
    """The matrix of a weight [columns, inputs, 1..] for a source that has some of the inputs alone
    (the attribute `INPUTS`), or a result that has some of the columns (`OUTPUTS`), and how a kernel
    finds these in the whole weight.

    Kernels of images find them in no weight but their own.

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
    assert constant is not None  # as of every node with such an attribute
    each = ITEMSIZE[constant.dtype]
    own = replace(weight, sizes=(columns, depth), constant=replace(
        constant, offset=constant.offset + start * each, key=None,
        nbytes=((columns - 1) * inputs + depth) * each))
    return cx.weight(own, (0, 1), 1, pitch=inputs), None


def rows_in(sizes: Sequence[int], views: Sequence[Node]) -> Dims | None:
    """How rows of whole texels of a product [.., M, N] lie in a row-major tensor that views of it
    are: the dimensions of a `Strided`; None where they do not."""
    rank = len(sizes)
    whole = Strided.of(Operand(NOWHERE, tuple(sizes), "float32", row_major(rank)))
    last = views[-1].outs[0].sizes
    found = turned(whole, views)
    if found is None or 0 in sizes or sizes[-1] % 4 or not last or last[-1] % 4:
        return None
    # The distance of a factor in the product, and in the tensor, which has them one in another
    pairs, stride = [], 1
    bounds = [factors[0][1] for factors in whole.dims if factors]
    for size, own in reversed([*_divided((f for dim in found.dims for f in dim), bounds)]):
        pairs.append((own, size, stride))
        stride *= size
    pairs.sort(reverse=True)
    dims: list[tuple[Factor, ...]] = []
    for own, size in zip((factors[0][1] if factors else 0 for factors in whole.dims), sizes):
        inner = [(count, step) for at, count, step in pairs if own <= at < own * size]
        if math.prod(count for count, _ in inner) != size:
            return None
        dims.append(joined(inner))
    along, across = dims[-1], dims[-2]
    if along not in ((), ((sizes[-1], 1),)) or len(across) > 1:
        return None
    return tuple(dims)


def _divided(factors: Iterable[Factor], bounds: Sequence[int]) -> Iterator[Factor]:
    """Factors, those that go on behind one of these distances (the largest first) in parts."""
    for size, stride in factors:
        for bound in bounds:
            if stride < bound < size * stride and not bound % stride and not size * stride % bound:
                yield size * stride // bound, bound
                size = bound // stride
        yield size, stride


def _has_rows(where: Strided, dim: int) -> bool:
    """Whether a dimension counts rows of whole texels, which the other one of the last two is."""
    other = -3 - dim
    across, along = where.dims[dim], where.dims[other]
    whole = where.source.order[-1] == len(where.source.sizes) + other and _is_whole(where)
    size = where.sizes[other]
    return (len(across) <= 1 and len(along) <= 1 and (size % 4 == 0 or whole)
            and (not along or along[0][1] == 1) and (bool(along) or whole)
            and where.base % 4 == 0
            and all(stride % 4 == 0 for dim in (*where.dims[:-2], across) for _, stride in dim))


def _is_whole(where: Strided) -> bool:
    """Whether it is all of its operand, as that lies."""
    return where == Strided.of(where.source)


def _step(dim: tuple[Factor, ...]) -> int:
    return dim[0][1] // 4 if dim else 0


def _batches(operands: Sequence[Dims]) -> tuple[int, list[tuple[int, int]]] | None:
    """How many inner batches there are for each outer one, and the distances in texels from one to
    the next, of the outer and the inner ones, for each operand; None where two numbers are not
    enough."""
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
