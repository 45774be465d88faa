"""Strided views: tensors that are parts or permutations of another one, in that one's memory."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from vkrt.graph.graph import Node
from vkrt.ops.strided_copy import MAX_DIMS, StridedDim, copy_strided, joined
from vkrt.work.tensor import Operand

# The factors of each dimension, outermost first; a dimension of size 1 has none.
Dims = tuple[tuple[StridedDim, ...], ...]


@dataclass(frozen=True, slots=True)
class Strided:
    """Where the elements of a tensor are in an operand that a node has written.

    A dimension that joins several non-contiguous dimensions of the operand has several factors.
    Index i of it is found at the sum of i's digits in these factors, each times its stride.

    Attributes:
        source: the operand, of a buffer.
        dims: the factors of each dimension.
        base: the first element.
    """

    source: Operand
    dims: Dims
    base: int = 0

    @classmethod
    def of(cls, operand: Operand) -> Strided:
        """A whole operand, which is not raw."""
        return cls(operand, tuple(joined([dim]) for dim in operand.dims()))

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(math.prod(size for size, _ in dim) for dim in self.dims)

    def reshaped(self, sizes: Sequence[int]) -> Strided | None:
        """The same elements in the same order under other sizes; None where their distances
        would not be regular, or there are more or fewer elements."""
        if math.prod(sizes) != math.prod(self.sizes):
            return None
        if 0 in sizes:
            return replace(self, dims=tuple(joined([(size, 1)]) for size in sizes))
        left = list(joined(factor for dim in self.dims for factor in dim))
        dims: list[tuple[StridedDim, ...]] = []
        for size in reversed(sizes):
            dim: list[StridedDim] = []
            while size > 1:
                count, stride = left.pop()
                if count > size:
                    if count % size:
                        return None
                    left.append((count // size, stride * size))
                    count = size
                elif size % count:
                    return None
                dim.insert(0, (count, stride))
                size //= count
            dims.insert(0, tuple(dim))
        return replace(self, dims=tuple(dims))

    def permuted(self, permutation: Sequence[int]) -> Strided:
        """The dimensions in another order, each named by its number here."""
        return replace(self, dims=tuple(self.dims[d] for d in permutation))

    def part(self, dim: int, start: int, count: int, step: int = 1) -> Strided | None:
        """The indices start, start + step, .. of a dimension; None where they are not at regular
        distances."""
        found = _part(self.dims[dim], start, count, step)
        if found is None:
            return None
        factors, base = found
        dims = [*self.dims]
        dims[dim] = factors
        return replace(self, dims=tuple(dims), base=self.base + base)

    def without(self, dim: int) -> Strided:
        """The same elements without a dimension of size 1."""
        return replace(self, dims=(*self.dims[:dim], *self.dims[dim + 1:]))

    def copied(self, cx, order: Sequence[int]) -> Operand:
        """A copy of the elements, in an order of the dimensions in memory."""
        result = cx.temporary(self.sizes, self.source.dtype, order)
        self.copy_into(cx, result)
        return result

    def copy_into(self, cx, result: Operand) -> None:
        """Copies the elements to an operand of the same sizes."""
        dims = [factor for d in result.order for factor in self.dims[d] or ((1, 1),)]
        copy_strided(cx, result, self.source, dims, self.base)

    def can_be_copied(self) -> bool:
        """Whether one dispatch copies it, in any order of its dimensions."""
        return sum(len(dim) for dim in self.dims) <= MAX_DIMS


# Operators whose results are all elements of their first argument, in another shape ..
RESHAPES = frozenset({
    "aten.view.default", "aten._unsafe_view.default", "aten.view_copy.default",
    "aten.squeeze_copy.dims", "aten.squeeze_copy.dim", "aten.unsqueeze_copy.default",
    "aten.clone.default", "aten.alias_copy.default", "dim_order_ops._clone_dim_order.default"})
# .. or with the dimensions in another order
PERMUTATIONS = frozenset({"aten.permute.default", "aten.permute_copy.default",
                          "aten.t_copy.default", "aten.transpose_copy.int"})


def turned(where: Strided, nodes: Iterable[Node]) -> Strided | None:
    """Where the elements are that `RESHAPES` and `PERMUTATIONS` give, one node after the other;
    None where these are at no regular distances."""
    for node in nodes:
        if node.op in RESHAPES:
            found = where.reshaped(node.outs[0].sizes)
        else:
            found = where.permuted(permutation_of(node))
        if found is None:
            return None
        where = found
    return where


def permutation_of(node: Node) -> tuple[int, ...]:
    """Which dimension of its argument each dimension of the result of one of `PERMUTATIONS` is."""
    order = list(range(node.outs[0].rank))
    if not order:
        return ()
    if node.op == "aten.t_copy.default":
        return tuple(reversed(order))
    if node.op == "aten.transpose_copy.int":
        # A Double may stand where the schema has an int.
        a, b = (int(d) % len(order) for d in node.args[1:3])
        order[a], order[b] = order[b], order[a]
        return tuple(order)
    return tuple(int(d) % len(order) for d in node.args[1])


def _part(factors: tuple[StridedDim, ...], start: int, count: int, step: int
          ) -> tuple[tuple[StridedDim, ...], int] | None:
    """The indices start, start + step, .. of a dimension with these factors: their factors, and
    the distance of the first; None where they are not at regular distances."""
    if not factors:
        return (), 0
    *others, (size, stride) = factors
    if start // size == (start + max(count - 1, 0) * step) // size:
        outer = _part(tuple(others), start // size, 1, 1)
        inner, base = (count, stride * step), start % size * stride
    elif step == 1 and start % size == count % size == 0:
        outer = _part(tuple(others), start // size, count // size, 1)
        inner, base = (size, stride), 0
    else:
        return None
    return None if outer is None else (joined((*outer[0], inner)), outer[1] + base)
