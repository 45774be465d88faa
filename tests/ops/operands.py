"""Operands of nodes of random networks, some of them in the places of others."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

from vkrt.work.tensor import Tensor

OFTEN = 0.35


def repeated(args: Sequence[Any], chance: Random, constants: bool = True) -> list[Any]:
    """The arguments of a node, with some tensors in the places of others of their sizes and dtype;
    without `constants` these stay where they are."""
    def may_move(tensor: Any) -> bool:
        return isinstance(tensor, Tensor) and (constants or tensor.constant is None)

    tensors = [tensor for arg in args for tensor in (arg if isinstance(arg, list) else [arg])
               if may_move(tensor)]

    def one(value: Any) -> Any:
        if isinstance(value, list):
            return [one(item) for item in value]
        if not may_move(value) or chance.random() > OFTEN:
            return value
        return chance.choice([tensor for tensor in tensors if (tensor.sizes, tensor.dtype)
                              == (value.sizes, value.dtype)])

    return [one(value) for value in args]
