"""Which rows of its inputs an operator needs for some rows of its result.

A row is an index of one dimension. A node whose operator has a `RowRule` can be done for a part of
its rows at a time, in a strip (`vkrt.passes.strips`): each row of the result is then the same sums
in the same order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from vkrt.graph.graph import Node, tensors_in
from vkrt.ops.attributes import BORDER, EPILOGUE, FACTOR, INPUTS, OUTPUTS, RESIDUAL
from vkrt.ops.sizes import per_dimension
from vkrt.work.tensor import Tensor

# The first row, and the one behind the last
Rows = tuple[int, int]


@dataclass(frozen=True)
class Window:
    """The rows of an input that rows of the result need.

    Row r of the result is made of row r // unit * step - before and the `reach - 1` rows behind it.
    Where the input has no such row, the operator does as it does outside of its input.

    Attributes:
        dim: the dimension of the input whose indices are its rows.
        unit: so many rows of the result are made of the same rows of the input; a strip has whole
            units.
    """

    dim: int
    step: int = 1
    before: int = 0
    reach: int = 1
    unit: int = 1

    def reached(self, rows: Rows) -> Rows:
        """The rows that rows of the result need, even those outside of the input."""
        first, end = rows[0] // self.unit, -(-rows[1] // self.unit)
        return first * self.step - self.before, (end - 1) * self.step - self.before + self.reach

    def needed(self, rows: Rows, size: int) -> Rows:
        """The rows of `reached` that an input of `size` rows has."""
        first, end = self.reached(rows)
        return min(max(first, 0), size), min(max(end, 0), size)

    def possible(self, count: int) -> int:
        """How many rows of the result, in whole units, can be made of the first `count` rows of the
        input, which has more. Without any there are none, though some may need no row of it."""
        return count and max((count - self.reach + self.before) // self.step + 1, 0) * self.unit


# By tensor, of all tensors that are divided
Windows = Mapping[Tensor, Window]
# One for each place of a node's arguments and attributes whose tensor is divided
Places = Sequence[tuple[Tensor, Window]]


@dataclass(frozen=True)
class RowRule:
    """How an operator is done in strips.

    Attributes:
        places: gets a node and a dimension of its first result; gives the windows of the places
            whose tensors are divided too. In its other places tensors are needed whole. None where
            the node cannot be divided along the dimension.
        strip: gets a node, a dimension and the rows of a strip; gives the node with its arguments
            and attributes for the strip. Its tensors are still the whole ones.
        overwrites: whether the result may lie where an argument was that nothing else reads.
    """

    places: Callable[[Node, int], Places | None]
    strip: Callable[[Node, int, Rows], Node] = lambda node, _dim, _rows: node
    overwrites: bool = False

    def windows(self, node: Node, dim: int) -> Windows | None:
        """The windows of the tensors that are divided where the node is divided along a dimension
        of its first result. None where it cannot be: by its operator, or because a tensor stands in
        two places of which one needs other rows than the other, or all."""
        places = self.places(node, dim)
        if not places:
            return places if places is None else {}
        windows = dict(places)
        found, there = Counter(tensor for tensor, _ in places), Counter(node.tensors())
        if any(windows[tensor] != window or found[tensor] < there[tensor]
               for tensor, window in places):
            return None
        return windows


def _pointwise(node: Node, dim: int) -> Places | None:
    out = node.outs[0]
    places = []
    for tensor in tensors_in(node.args):
        own = dim - out.rank + tensor.rank
        # A tensor with one row is read for all rows.
        if own >= 0 and tensor.sizes[own] == out.sizes[dim]:
            places.append((tensor, Window(own)))
    return with_residual(node, dim, places)


# Each element of the result is made of the elements at its place, or broadcast to it
POINTWISE = RowRule(_pointwise, overwrites=True)


def except_along(dims: Callable[[Node], Collection[int]], overwrites: bool = True) -> RowRule:
    """The rule of an operator that goes over some dimensions, which the function gives. In all
    other dimensions its result has the rows of its first argument."""
    def places(node: Node, dim: int) -> Places | None:
        if dim in dims(node):
            return None
        return with_residual(node, dim, [(node.args[0], Window(dim))])

    return RowRule(places, overwrites=overwrites)


def with_residual(node: Node, dim: int, places: Places) -> Places | None:
    """The places of a node, its residual's included; None where it has other attributes that are
    about its rows."""
    if not node.attributes.keys() <= {EPILOGUE, RESIDUAL, BORDER, FACTOR, INPUTS, OUTPUTS}:
        return None
    residual = node.attributes.get(RESIDUAL)
    return [*places, (residual, Window(dim))] if residual is not None else places


def sliding(places: Callable[[Node, int], Places | None], padding_at: int) -> RowRule:
    """The rule of an operator whose windows slide over its first argument. Rows are indices of the
    first spatial dimension, and each strip has its own padding, the argument at `padding_at`."""
    def strip(node: Node, dim: int, rows: Rows) -> Node:
        x, found = node.args[0], places(node, dim)
        assert found  # as the node is divided
        padding = per_dimension(node.args[padding_at] or (0,), x.rank - 2, "padding", 0)
        first, end = found[0][1].reached(rows)
        # A strip may lie wholly in the border.
        front, behind = (min(max(outside, 0), end - first)
                         for outside in (-first, end - x.sizes[dim]))
        args: list[Any] = list(node.args)
        args[padding_at] = [front, *padding[1:]]
        border = (behind - front, *node.attributes.get(BORDER, (0,) * len(padding))[1:])
        attributes = {name: value for name, value in node.attributes.items() if name != BORDER}
        if any(border):
            attributes[BORDER] = border
        return replace(node, args=tuple(args), attributes=attributes)

    return RowRule(places, strip)
