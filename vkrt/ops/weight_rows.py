"""Layers that make some channels of a result with some rows of a weight."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from vkrt.graph.graph import Node
from vkrt.ops.attributes import FIRST_ROW
from vkrt.ops.sizes import Sizes
from vkrt.work.constant_rows import TEXEL_ROWS, has_rows, rows_of
from vkrt.work.tensor import Tensor, round_up


class WeightRows(NamedTuple):
    """Which constants of a layer have a row for each channel of its result. Some rows of all of
    them are a layer that makes those channels, by the same sums.

    Attributes:
        weight: the place of the weight among the arguments.
        vectors: the places of the constants with an element, or a row, for each channel. They may
            be None, and may have more elements than there are channels, as padding.
        whole: the places of the constants [.., channels], with the number of which their channels
            are padded to a multiple. Parts of the layer read them as a whole, from a channel on
            (the attribute `FIRST_ROW`).
        dim: the dimension of the result that has the channels.
        suits: gets the node; whether its kernels can make some channels.
    """

    weight: int = 1
    vectors: tuple[int, ...] = (2,)
    whole: Mapping[int, int] = MappingProxyType({})
    dim: int = -1
    suits: Callable[[Node], bool] = lambda _node: True

    def weight_of(self, node: Node) -> Tensor | None:
        """The weight of a node that can be done with some rows of it; None where it cannot."""
        weight = node.args[self.weight]
        divided = (weight, *(node.args[place] for place in self._vectors(node)))
        if (all(map(has_rows, divided)) and self.suits(node)
                and all(node.args[place].constant is not None for place in self.whole)):
            return weight
        return None

    def _vectors(self, node: Node) -> Iterator[int]:
        """The places of the vectors that a node has."""
        return (place for place in self.vectors
                if place < len(node.args) and node.args[place] is not None)

    def part(self, node: Node, start: int, end: int) -> tuple[tuple[Any, ...], dict[str, int]]:
        """The arguments, and further attributes, of a layer that makes the channels
        [start, end)."""
        args = list(node.args)
        channels = args[self.weight].sizes[0]
        args[self.weight] = rows_of(args[self.weight], start, end)
        for place in self._vectors(node):
            vector = args[place]
            args[place] = rows_of(vector, start, vector.sizes[0] if end == channels else end)
        return tuple(args), {FIRST_ROW: start} if self.whole else {}

    def part_sizes(self, node: Node) -> Mapping[Tensor, Sizes]:
        """The sizes that the whole constants would have for the channels of a node alone, by
        tensor; empty for a node that has all rows of its weight."""
        first = node.attributes.get(FIRST_ROW)
        if first is None:
            return {}
        count = node.outs[0].sizes[self.dim]
        return {node.args[place]: (*node.args[place].sizes[:-1], round_up(count, multiple))
                for place, multiple in self.whole.items()}

    def fits(self, node: Node) -> bool:
        """Whether the whole constants of a node have the channels that `FIRST_ROW` says."""
        first = node.attributes[FIRST_ROW]
        return bool(self.whole) and first % TEXEL_ROWS == 0 and all(
            0 <= first <= node.args[place].sizes[-1] - node.outs[0].sizes[self.dim]
            for place in self.whole)
