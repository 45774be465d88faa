"""How the sums of convolutions and products end, for the kernels that include ending.glsl."""

from __future__ import annotations

from vkrt.dataclass import dataclass
from vkrt.work.tensor import Operand


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
