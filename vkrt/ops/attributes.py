"""Attributes of nodes: what a kernel does besides its operator. Passes set them."""

from __future__ import annotations

from dataclasses import dataclass

from vkrt.graph.graph import Node
from vkrt.ops.strided import PERMUTATIONS, RESHAPES

# An activation of the result, as a `vkrt.ops.epilogue.Epilogue`
EPILOGUE = "epilogue"
# A tensor of the result's sizes and dtype that is added to it
RESIDUAL = "residual"
# Of a layer that uses some channels of a whole weight (`vkrt.ops.channels`): the first input
# channel, where the input does not have all of them, and the first output channel, where the result
# does not have all of them
INPUTS, OUTPUTS = "inputs", "outputs"
# Of a layer whose weight is some rows of a larger one (`vkrt.ops.weight_rows`), while further
# constants are those of the whole layer: the first of the rows
FIRST_ROW = "first_row"
# Sizes of the result, a view of the operator's own result with the same rows
VIEW = "view"
# Of a convolution or a pooling: the padding behind the input minus the padding before it, in each
# spatial dimension. The padding before the input is an argument.
BORDER = "border"
# What happens to a quantized result, as a `Requantization`
REQUANTIZATION = "requantization"
# A number that a product is multiplied with
FACTOR = "factor"
# Whether a sum or a mean is one of the squares of its argument
SQUARES = "squares"
# Views of a product's result: the product writes its rows where the last view has them; a
# `Permutation`
PERMUTATION = "permutation"
# Another layer: the silu of its result is multiplied with this layer's result
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
# Operators that take a border of whatever they pad with
BORDERED = CONVOLUTIONS | {"aten.max_pool2d.default", "aten.max_pool2d_with_indices.default"}
# Operators that take a factor
PRODUCTS = frozenset({"aten.bmm.default", "aten.mm.default"})
# Operators that sum squares
SQUARED = frozenset({"aten.mean.dim", "aten.mean.default", "aten.sum.dim_IntList"})
# Attention as two products
ATTENTION = "vkrt.attention.default"
# Operators whose kernels make attention's scores in blocks (`vkrt.ops.score_blocks`)
WITH_SCORES = frozenset({ATTENTION, "et_vk.sdpa.default"})
# Operators that take a permutation, and read strided views
STRIDED_READERS = PRODUCTS | {ATTENTION}
# Operators whose results are elements of their first argument
VIEWS = RESHAPES | PERMUTATIONS | {"aten.expand_copy.default", "aten.select_copy.int",
                            "aten.slice_copy.Tensor", "aten.split_with_sizes_copy.default"}
# The operators by what they take
TAKERS = {BORDER: BORDERED, FACTOR: PRODUCTS, PERMUTATION: STRIDED_READERS, SQUARES: SQUARED,
          STRIDED: VIEWS}


@dataclass(frozen=True)
class Requantization:
    """What happens to a quantized result: it is made real, limited, and quantized again.

    Attributes:
        scale: makes it real, with the zero of the result.
        low, high: limits of the real value.
        new_scale, new_zero: quantize it again.
    """

    scale: float
    low: float
    high: float
    new_scale: float
    new_zero: int


@dataclass(frozen=True)
class Permutation:
    """Views of a product's result, each a view of the one before.

    Attributes:
        views: of `RESHAPES` and `PERMUTATIONS` (`vkrt.ops.strided`).
    """

    views: tuple[Node, ...]


def layers_in(node: Node) -> tuple[Node, ...]:
    """A linear layer, and the layers that its kernel does too."""
    gate = node.attributes.get(GATE)
    return (node, *(() if gate is None else (gate,)), *node.attributes.get(HORIZONTAL, ()))
