"""Tensors that are made in strips, one after the other: each strip goes to its place at once."""

from __future__ import annotations

from dataclasses import replace

from vkrt.graph.graph import Graph, Node
from vkrt.ops.concat import JOIN_STRIPS, put, starts_along
from vkrt.ops.views import part_offset
from vkrt.work.tensor import Operand, Tensor, row_major


class Joins:
    """The whole tensors that `vkrt.join_strips` makes of strips, and their operands."""

    def __init__(self, graph: Graph):
        # strip -> the whole, the dimension, the first of its rows there
        self._places: dict[Tensor, tuple[Tensor, int, int]] = {}
        self._wholes: dict[Tensor, Operand] = {}
        # Wholes of which some strip begins within four rows, which must not share a texel then
        self._unaligned: set[Tensor] = set()
        # The host reads these results row by row.
        self._results = {value for value in graph.outputs if isinstance(value, Tensor)}
        for node in graph.nodes:
            if node.op == JOIN_STRIPS:
                (strips, dim), (whole,) = node.args, node.outs
                starts = starts_along(strips, dim)
                if any(start % 4 for start in starts):
                    self._unaligned.add(whole)
                if not self.is_concatenated(whole):
                    self._places.update((strip, (whole, dim, start))
                                        for strip, start in zip(strips, starts))

    def is_concatenated(self, whole: Tensor) -> bool:
        """Whether the strips are put together when all have been made: rows of a vector are always
        along texels."""
        return whole.rank == 1 and whole in self._unaligned

    def place(self, cx, tensor: Tensor, order: tuple[int, ...]) -> Operand | None:
        """The operand through which a kernel writes a strip to its place; None where the elements
        of the strip would not be contiguous, and for a tensor that is no strip."""
        if tensor not in self._places:
            return None
        whole, dim, start = self._places[tensor]
        operand = self._whole(cx, whole, dim, order)
        if operand.order != tuple(order):
            return None
        offset = part_offset(cx, operand, dim, start, tensor.sizes[dim])
        return None if offset is None else replace(operand, sizes=tensor.sizes,
                                                   offset=operand.offset + offset)

    def finish(self, cx, node: Node) -> None:
        """Copies the strips of a node that were made elsewhere to their places."""
        for tensor in node.outs:
            if tensor in self._places:
                whole, dim, start = self._places[tensor]
                source = cx.read(tensor)
                operand = self._whole(cx, whole, dim, source.order)
                if source.storage is not operand.storage:
                    put(cx, operand, source, dim, start)

    def operand(self, whole: Tensor) -> Operand:
        """The operand of a tensor whose strips have all been made."""
        return self._wholes[whole]

    def _whole(self, cx, whole: Tensor, dim: int, order: tuple[int, ...]) -> Operand:
        """The operand of a tensor that is joined along a dimension: in the order of its first
        strip, unless its rows are along texels there and a strip does not begin with a texel."""
        if whole not in self._wholes:
            if whole in self._results and whole.sizes[-1] % 4 == 0 and cx.storage != "texture3d":
                order = row_major(whole.rank)
            if order[-1] == dim and whole in self._unaligned:
                order = (*order[:-2], dim, order[-2])
            self._wholes[whole] = cx.temporary(whole.sizes, whole.dtype, order)
        return self._wholes[whole]
