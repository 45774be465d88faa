"""Epilogues of convolutions and products, for the kernels that include epilogue.glsl."""

from __future__ import annotations

import math
from dataclasses import dataclass

from vkrt.graph.graph import Node
from vkrt.ops.attributes import EPILOGUE, RESIDUAL
from vkrt.ops.registry import known
from vkrt.work.tensor import Operand, row_major


@dataclass(frozen=True)
class EpilogueArgs:
    """What shaders/common/epilogue.glsl binds and reads.

    Attributes:
        vectors: operands, from its first binding on.
        params: numbers, from its first parameter on.
        curve: what product.glsl does in the place of an activation; 0 for none.
    """

    vectors: tuple[Operand, ...]
    params: tuple[float, ...]
    curve: int = 0


# Activations that epilogue.glsl knows; the index of each is its `gate`
EPILOGUES = ("CLAMP", "HARDSWISH", "HARDSIGMOID")

# Further activations that product.glsl knows; the index of each, counted from 1, is its `curve`
CURVES = ("GELU", "GELU_TANH", "SILU", "SIGMOID", "TANH")


# Activations by torch's name of the approximation
GELU = {"none": "GELU", "tanh": "GELU_TANH"}


@dataclass(frozen=True)
class Epilogue:
    """An activation that a kernel applies to its result.

    Attributes:
        activation: the activation by its name.
        bounds: of a clamp.
    """

    activation: str
    bounds: tuple[float, float] = (0.0, 0.0)


def node_epilogue(cx) -> Epilogue | None:
    """The activation that the current node's kernel applies to its result."""
    return cx.attribute(EPILOGUE)


def epilogue_of(node: Node) -> Epilogue:
    """The epilogue for a node that is an activation; its arguments have been checked."""
    found = known(node.op)
    assert found.activation is not None  # else no kernel could do it
    args = found.schema.read(node.args)
    if found.activation == "GELU":
        return Epilogue(GELU[args[1]])
    return Epilogue(found.activation, (0.0, 0.0) if found.bounds is None else found.bounds(*args))


def plain(vector: Operand, has_bias: bool, then: Epilogue | None = None) -> EpilogueArgs:
    """A sum plus a bias (`vector`, a placeholder where there is none), then an activation of
    `EPILOGUES`, or for products also of `CURVES`."""
    if then is not None and then.activation in CURVES:
        return EpilogueArgs((vector,), (has_bias, 0, -math.inf, math.inf),
                      1 + CURVES.index(then.activation))
    gate = 0 if then is None else EPILOGUES.index(then.activation)
    bounds = (-math.inf, math.inf) if then is None else (0.0, 1.0) if gate else then.bounds
    return EpilogueArgs((vector,), (has_bias, gate, *bounds))


def node_residual(cx, order: tuple[int, ...] | None = None) -> Operand | None:
    """The residual of the current node's kernel, in the result's order (by default row-major)."""
    tensor = cx.attribute(RESIDUAL)
    return None if tensor is None else cx.read(tensor, order or row_major(tensor.rank))


def over(other: Operand | None, *reads: Operand) -> tuple[Operand, ...]:
    """The operands that the result may overwrite: the residual, where the kernel does not also read
    its memory in other places."""
    if other is None or any(read.storage is other.storage for read in reads):
        return ()
    return (other,)
