"""Layers that use some input channels, or make some output channels, of a whole weight: the
attributes `INPUTS` and `OUTPUTS` of their nodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from vkrt.graph.graph import Node
from vkrt.ops.attributes import INPUTS, OUTPUTS
from vkrt.ops.sizes import Sizes
from vkrt.work.tensor import Operand, Tensor, itemsize

# The place of the weight [outputs, inputs, ..] among the arguments of a layer
WEIGHT = 1
# Channels are taken in whole texels. A bias is bound at an offset of 256-byte units: no device asks
# for larger ones.
TEXEL, ALIGNED = 4, 64


def part_of_bias(vector: Operand, first: int | None, count: int) -> Operand:
    """`count` elements of a bias from output channel `first` (`OUTPUTS`) on; all of it for None."""
    if first is None or vector.placeholder:
        return vector
    return replace(vector, sizes=(count,), offset=vector.offset + first * itemsize(vector.dtype))


def _nothing(_node: Node, _inputs: int, _outputs: int) -> Mapping[Tensor, Sizes]:
    return {}


@dataclass(frozen=True)
class ChannelRule:
    """How a layer is done for some of its channels.

    Attributes:
        unit: gets the node; gives the unit of input channels. The weight has whole units, and a
            layer takes whole units. 0 where its kernels only take all channels.
        bias: the place of the bias among the arguments; None for operators without one.
        is_linear: whether channels are the last dimension, and output channels can be taken.
        packed: input channels in an element of the weight.
        scales: gets the node, and how many input and output channels it takes; gives the sizes of
            the further constants for those channels, by tensor.
    """

    unit: Callable[[Node], int] = lambda _node: TEXEL
    bias: int | None = 2
    is_linear: bool = True
    packed: int = 1
    scales: Callable[[Node, int, int], Mapping[Tensor, Sizes]] = _nothing

    @property
    def divides(self) -> bool:
        """Whether some rows of the weight, and of the bias, are those of a layer that makes only
        these output channels."""
        return self.scales is _nothing

    def takes_part(self, node: Node) -> bool:
        """Whether some input or output channels of its weight can be taken."""
        unit = self.unit(node)
        return (node.args[WEIGHT].constant is not None and unit > 0
                and self._all(node)[0] % unit == 0)

    def dim(self, tensor: Tensor) -> int:
        """Which dimension of an input or of a result has the channels."""
        return tensor.rank - 1 if self.is_linear else 1

    def part_sizes(self, node: Node) -> Mapping[Tensor, Sizes]:
        """The sizes that the constants would have for only the channels that a node takes, by
        tensor; empty for a node that takes all channels."""
        if node.attributes.keys().isdisjoint((INPUTS, OUTPUTS)):
            return {}
        weight: Tensor = node.args[WEIGHT]
        inputs, outputs = self._taken(node)
        bias = None if self.bias is None else node.args[self.bias]
        biases = {bias: (outputs,)} if isinstance(bias, Tensor) else {}
        return {weight: (outputs, inputs // self.packed, *weight.sizes[2:]), **biases,
                **self.scales(node, inputs, outputs)}

    def unit_of_outputs(self, node: Node) -> int:
        """The unit of output channels: a layer takes whole units, except at the end of the
        weight."""
        return TEXEL if self.bias is None or node.args[self.bias] is None else ALIGNED

    def fits(self, node: Node) -> bool:
        """Whether the weight of a node has the channels that its attributes say."""
        if not self.takes_part(node) or (OUTPUTS in node.attributes and not self.is_linear):
            return False
        firsts = node.attributes.get(INPUTS, 0), node.attributes.get(OUTPUTS, 0)
        units = self.unit(node), self.unit_of_outputs(node)
        return all(first % unit == 0 and 0 <= first <= size - count for first, unit, size, count in
                   zip(firsts, units, self._all(node), self._taken(node)))

    def _all(self, node: Node) -> tuple[int, int]:
        weight = node.args[WEIGHT]
        return weight.sizes[1] * self.packed, weight.sizes[0]

    def _taken(self, node: Node) -> tuple[int, int]:
        x, out = node.args[0], node.outs[0]
        inputs, outputs = self._all(node)
        return (x.sizes[self.dim(x)] if INPUTS in node.attributes else inputs,
                out.sizes[self.dim(out)] if OUTPUTS in node.attributes else outputs)
