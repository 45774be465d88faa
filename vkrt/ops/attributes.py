"""What a kernel does besides its operator: attributes of nodes, which passes put there."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from vkrt.errors import FormatError
from vkrt.graph.graph import Node
from vkrt.ops.sizes import Sizes
from vkrt.ops.strided import RESHAPES, TURNS
from vkrt.work.tensor import Tensor

if TYPE_CHECKING:
    from vkrt.ops.registry import Operator

# An activation of the result, as a `vkrt.ops.ending.Tail`
EPILOGUE = "epilogue"
# A tensor of the result's sizes and dtype that is added to it
RESIDUAL = "residual"
# Sizes of the result, which is a view of the operator's, with the same rows
VIEW = "view"
# How much wider the zeros behind the input of a convolution are than those before it, in each
# spatial dimension; how wide these are is an argument
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
CHOICE = "choice"
# The norm that makes the row of the layers
NORM = "norm"
# Whether the result of a view may stay where its elements are
STRIDED = "strided"

# Operators that take a border
CONVOLUTIONS = frozenset({"aten.convolution.default", "et_vk.conv_with_clamp.default"})
# Operators that take a factor and a permutation, and read strided views
PRODUCTS = frozenset({"aten.bmm.default", "aten.mm.default"})
# Operators whose results are elements of their first argument
VIEWS = RESHAPES | TURNS | {"aten.expand_copy.default", "aten.select_copy.int",
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
        views: of `RESHAPES` and `TURNS` (`vkrt.ops.strided`).
    """

    views: tuple[Node, ...]


def input_sizes(node: Node) -> Callable[[Tensor], Sizes]:
    """Sizes of the tensors of a node as the rule of its operator has to see them."""
    border = node.attributes.get(BORDER)
    if border is None:
        return _sizes_of
    x = node.args[0]
    wider = (*x.sizes[:2], *(size + more for size, more in zip(x.sizes[2:], border, strict=True)))
    return lambda tensor: wider if tensor is x else tensor.sizes


_sizes_of = attrgetter("sizes")


def layers_in(node: Node) -> tuple[Node, ...]:
    """A linear layer, and those that are done with it."""
    gate = node.attributes.get(GATE)
    return (node, *(() if gate is None else (gate,)), *node.attributes.get(HORIZONTAL, ()))


def result_sizes(operator: Operator, node: Node, sizes: Sequence[Sizes]) -> Sequence[Sizes]:
    """Sizes of the results of a node.

    Args:
        sizes: those of its operator's, without attributes.

    Raises:
        FormatError: the first result is to be a view of other rows or elements.
    """
    if HORIZONTAL in node.attributes:
        return (*sizes, *(size for layer in node.attributes[HORIZONTAL]
                          for size in operator.infer(layer.args)))
    view, permutation = node.attributes.get(VIEW), node.attributes.get(PERMUTATION)
    first, *others = sizes or ((),)
    if permutation is not None:
        last = tuple(permutation.views[-1].outs[0].sizes)
        if math.prod(last) != math.prod(first):
            raise FormatError(f"{node}: views of sizes {list(last)} of a result of sizes "
                              f"{list(first)}")
        return (last, *others)
    if view is None:
        return sizes
    if math.prod(view) != math.prod(first) or view[-1:] != first[-1:]:
        raise FormatError(f"{node}: a view of sizes {list(view)} has other rows than a result of "
                          f"sizes {list(first)}")
    return (view, *others)


def check_attributes(operator: Operator, node: Node, args: Sequence[Any]) -> None:
    """Compares the attributes of a node with what its operator declares.

    Args:
        args: as the schema reads them.

    Raises:
        FormatError: the operator does not take one of them.
    """
    for name, value in node.attributes.items():
        if name == EPILOGUE:
            fits = value.activation in operator.takes_activation
        elif name == RESIDUAL:
            out = node.outs[0]
            fits = (operator.takes_addend is not None and operator.takes_addend(*args)
                    and isinstance(value, Tensor)
                    and (value.dtype, tuple(value.sizes)) == (out.dtype, tuple(out.sizes)))
        elif name == REQUANTIZATION:
            fits = operator.takes_requantization
        elif name == BORDER:
            fits = node.op in CONVOLUTIONS
        elif name in (FACTOR, PERMUTATION):
            fits = node.op in PRODUCTS
        elif name in (GATE, HORIZONTAL):
            fits = operator.of_row > 0 and all(layer.op == node.op for layer in layers_in(node))
        elif name == CHOICE:
            fits = tuple(node.args[:operator.of_row]) == (value.args[0], *value.outs)
        elif name == NORM:
            fits = operator.of_row > 0 and node.args[0] in value.outs
        elif name == STRIDED:
            fits = node.op in VIEWS
        else:
            fits = name == VIEW and operator.takes_addend is not None
        if not fits:
            raise FormatError(f"{node}: attribute {name} {value!r}, which the operator does not "
                              "take")
