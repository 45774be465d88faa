"""What a kernel does besides its operator: attributes of nodes, which passes put there."""

from __future__ import annotations

from dataclasses import dataclass

from vkrt.graph.graph import Node
from vkrt.ops.strided import PERMUTATIONS, RESHAPES

# An activation of the result, as a `vkrt.ops.epilogue.Epilogue`
EPILOGUE = "epilogue"
# A tensor of the result's sizes and dtype that is added to it
RESIDUAL = "residual"
# The first of the input channels of its weight that a layer multiplies, where its input has not all
# of them, and the first of the output channels that it makes, where its result has not all; the
# weight is there as a whole (`vkrt.ops.channels`)
INPUTS, OUTPUTS = "inputs", "outputs"
# Sizes of the result, which is a view of the operator's, with the same rows
VIEW = "view"
# How much wider the padding behind the input of a convolution, or of a pooling, is than that before
# it, in each spatial dimension (less than 0: narrower); how wide this is is an argument
BORDER = "border"
# What happens to a quantized result, as a `Requantization`
REQUANTIZATION = "requantization"
# A number that a product is multiplied with
FACTOR = "factor"
# Views behind a product, whose rows it puts where the last of them has them: a `Permutation`
PERMUTATION = "permutation"
# The layer whose silu the layer's result is multiplied with
GATE = "gate"
# Layers of the same row, whose results are further results of the node
HORIZONTAL = "horizontal"
# How the row of the layers is quantized: the node that chooses scale and zero
QPARAMS = "qparams"
# The norm that makes the row of the layers
NORM = "norm"
# Whether the result of a view may stay where its elements are
STRIDED = "strided"

# Operators that take a border of zeros
CONVOLUTIONS = frozenset({"aten.convolution.default", "et_vk.conv_with_clamp.default"})
# Operators that take a border of what their padding is
BORDERED = CONVOLUTIONS | {"aten.max_pool2d.default", "aten.max_pool2d_with_indices.default"}
# Operators that take a factor
PRODUCTS = frozenset({"aten.bmm.default", "aten.mm.default"})
# Attention as two products
ATTENTION = "vkrt.attention.default"
# Operators that take a permutation, and read strided views
STRIDED_READERS = PRODUCTS | {ATTENTION}
# Operators whose results are elements of their first argument
VIEWS = RESHAPES | PERMUTATIONS | {"aten.expand_copy.default", "aten.select_copy.int",
                            "aten.slice_copy.Tensor", "aten.split_with_sizes_copy.default"}


@dataclass(frozen=True)
class Requantization:
    """What happens to a quantized result: it is made real, limited, and quantized again.

    Attributes:
        scale: with which it is made real; its zero is that of the result.
        low, high: what it is limited to.
        new_scale, new_zero: with which it is quantized then.
    """

    scale: float
    low: float
    high: float
    new_scale: float
    new_zero: int


@dataclass(frozen=True)
class Permutation:
    """Views that read a product's result, each the result of the one before.

    Attributes:
        views: of `RESHAPES` and `PERMUTATIONS` (`vkrt.ops.strided`).
    """

    views: tuple[Node, ...]


def layers_in(node: Node) -> tuple[Node, ...]:
    """A linear layer, and those that are done with it."""
    gate = node.attributes.get(GATE)
    return (node, *(() if gate is None else (gate,)), *node.attributes.get(HORIZONTAL, ()))
