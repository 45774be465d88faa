"""How the sums of convolutions and products end, for the kernels that include ending.glsl."""

from __future__ import annotations

from vkrt.dataclass import dataclass
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


def plain(vector: Operand, has_bias: bool, clamp: tuple[float, float] | None) -> Ending:
    """A sum plus a bias, limited to a range.

    Args:
        vector: the bias; a placeholder where there is none.
        clamp: between which numbers to limit the result; None: it is not limited.
    """
    return Ending((vector,), (has_bias, clamp is not None, *(clamp or (0.0, 0.0))))


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
