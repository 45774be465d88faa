"""What a method keeps from run to run."""

from __future__ import annotations

from typing import NamedTuple

from vkrt.executable.memory import Block
from vkrt.executable.records import Range
from vkrt.work.tensor import Dtype


class StateTensor(NamedTuple):
    """A tensor that keeps its value from run to run.

    Attributes:
        name: of the tensor in the program.
        sizes, dtype: of its elements, which lie contiguous and row-major.
        range: where it lies: at the start of its storage, or behind other states there.
        nbytes: of the elements, without padding.
        source, offset: where the file has the value it begins with.
        is_zero: it begins with zeros, which are not read.
        places: how many places of a text it has rows for, if operators write only the rows of the
            places that they are given. To go back to an earlier place is then to forget the rows
            behind it. 0 for a state whose new value is made of all of the old one.
    """

    name: str
    sizes: tuple[int, ...]
    dtype: Dtype
    range: Range
    nbytes: int
    source: int
    offset: int
    is_zero: bool
    places: int = 0


class StatePlan(NamedTuple):
    """Everything that a method keeps from run to run, and the memory of it.

    Attributes:
        tensors: in the order of the program.
        blocks: of device memory.
    """

    tensors: tuple[StateTensor, ...] = ()
    blocks: tuple[Block, ...] = ()

    @property
    def nbytes(self) -> int:
        """Bytes of device memory."""
        return sum(block.nbytes for block in self.blocks)
