"""What sizes the results of an operator have, and whether a node of a file agrees.

A file may say anything. Before a node is lowered `check` makes sure that its arguments are what the
operator takes and that its results have the sizes and dtypes that follow from them, so that no
shader reads or writes outside of an operand because two numbers in the file contradict each other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from vkrt.errors import FormatError, UnsupportedError
from vkrt.graph.graph import Node
from vkrt.ops.shapes import (  # noqa: F401 (importing declares the rules)
    host,
    indexing,
    layout,
    pointwise,
    products,
    quantized,
    reduction,
    windows,
)
from vkrt.ops.shapes.dtypes import DTYPE_RULES, result_dtypes
from vkrt.ops.shapes.rules import SHAPE_RULES, Rule, Sizes
from vkrt.work.tensor import Tensor

__all__ = ["DTYPE_RULES", "SHAPE_RULES", "Rule", "Sizes", "arguments", "check", "infer",
           "result_dtypes"]


def _rule(name: str) -> Rule:
    if name not in SHAPE_RULES:
        raise UnsupportedError(f"vkrt has no shape rule for operator {name}")
    return SHAPE_RULES[name]


def infer(name: str, args: Sequence[Any],
          sizes_of: Callable[[Tensor], Sizes] = lambda tensor: tensor.sizes) -> tuple[Sizes, ...]:
    """Sizes of each result of an operator.

    Args:
        name: of the operator.
        args: as a node has them.
        sizes_of: the sizes a tensor has now; by default those of the file.

    Raises:
        FormatError: arguments that the operator does not take.
        UnsupportedError: arguments that torch takes and vkrt does not, or an operator without a
            rule.
    """
    return _rule(name)(args, sizes_of)


def arguments(node: Node) -> tuple[Any, ...]:
    """A node's arguments coerced to the kinds of its operator, None for those left out."""
    return _rule(node.op).read(node.args)


def check(node: Node) -> None:
    """Compares a node with the rule of its operator.

    Raises:
        FormatError: arguments that the operator does not take, or results with other sizes or
            dtypes than follow from the arguments.
        UnsupportedError: arguments that torch takes and vkrt does not, or an operator without a
            rule.
    """
    try:
        expected = infer(node.op, node.args)
        dtypes = result_dtypes(node.op, node.args, len(node.outs))
    except (FormatError, UnsupportedError) as error:
        raise type(error)(f"{node}: {error}") from None
    if len(expected) != len(node.outs):
        raise FormatError(f"{node}: expected {len(expected)} results, the file has "
                          f"{len(node.outs)}")
    for index, (out, sizes, dtype) in enumerate(zip(node.outs, expected, dtypes, strict=True)):
        if tuple(out.sizes) != sizes:
            raise FormatError(f"{node}: result {index}: expected sizes {list(sizes)}, the file "
                              f"says {list(out.sizes)}")
        if dtype is not None and out.dtype not in dtype:
            raise FormatError(f"{node}: result {index}: expected dtype "
                              f"{' or '.join(sorted(dtype))}, the file says {out.dtype}")
