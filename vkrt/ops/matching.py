"""What searches in a graph ask of nodes and tensors."""

from __future__ import annotations

from typing import Any

from vkrt.errors import VkrtError
from vkrt.graph.graph import Node
from vkrt.ops.broadcast import is_float
from vkrt.ops.registry import operator
from vkrt.work.tensor import Tensor


def declared(node: Node, what: str) -> Any:
    """What the declaration of a node's operator says; None where vkrt does not have it."""
    return getattr(operator(node.op), what, None)


def takes_activation(head: Node, node: Node) -> bool:
    """Whether the kernel of the first node can do what the second one is."""
    activation = declared(node, "activation")
    return activation is not None and activation in (declared(head, "takes_activation") or ())


def arguments(node: Node) -> dict[str, Any] | None:
    """A node's arguments by the names of the schema; None where a file has wrong ones, which the
    checks will say."""
    found = operator(node.op)
    assert found is not None  # else it would not be part of a chain
    try:
        found.infer(node.args)
        read = found.schema.read(node.args)
    except (VkrtError, ArithmeticError, LookupError, TypeError, ValueError):
        return None
    names = [parameter.name for parameter in found.schema.parameters if parameter.kind != "-"]
    return dict(zip(names, read, strict=True))


def alike(first: Tensor, *others: Tensor) -> bool:
    """Whether tensors of floats have one dtype and the same sizes."""
    return is_float(first.dtype) and all(
        (tensor.dtype, tuple(tensor.sizes)) == (first.dtype, tuple(first.sizes))
        for tensor in others)
