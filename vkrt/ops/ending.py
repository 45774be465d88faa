"""How the sums of convolutions and products end, for the kernels that include ending.glsl."""

from __future__ import annotations

from collections.abc import Callable

from vkrt.dataclass import dataclass
from vkrt.ops.registry import known
from vkrt.work.tensor import Operand, row_major


@dataclass(frozen=True)
class Ending:
    """What shaders/common/ending.glsl binds and reads.

    Attributes:
        vectors: operands, from its first binding on.
        params: numbers, from its first parameter on.
    """

    vectors: tuple[Operand, ...]
    params: tuple[float, ...]


# Activations that ending.glsl knows, and their numbers there
ENDINGS = {"CLAMP": 1, "HARDSWISH": 2}

Activation = tuple[int, float, float]
NO_ACTIVATION: Activation = 0, 0.0, 0.0


def clamp(low: float, high: float) -> Activation:
    """What limits a result to a range."""
    return ENDINGS["CLAMP"], low, high


def plain(vector: Operand, has_bias: bool, activation: Activation = NO_ACTIVATION) -> Ending:
    """A sum plus a bias, and an activation of that.

    Args:
        vector: the bias; a placeholder where there is none.
    """
    return Ending((vector,), (has_bias, *activation))


def tail(cx, numbers: Callable[[str], int]) -> Activation:
    """What the current node's kernel does to its result (see `vkrt.ops.fusing`).

    Args:
        numbers: of the kinds of activations, as the kernel has them.
    """
    node = cx.fusions.tails.get(cx.node)
    if node is None:
        return NO_ACTIVATION
    found = known(node.op)
    assert found.activation is not None  # else it would not be a tail
    bounds = found.bounds(*found.schema.read(node.args)) if found.bounds else (0.0, 0.0)
    return numbers(found.activation), *bounds


def addend(cx) -> Operand | None:
    """What the current node's kernel adds to its result (see `vkrt.ops.fusing`), row-major."""
    tensor = cx.fusions.addends.get(cx.node)
    return None if tensor is None else cx.read(tensor, row_major(tensor.rank))


def over(other: Operand | None, *reads: Operand) -> tuple[Operand, ...]:
    """What the result may be written over: what is added to it, where the kernel does not also read
    that in other places."""
    if other is None or any(read.storage is other.storage for read in reads):
        return ()
    return (other,)
