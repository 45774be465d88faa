"""InitialValues: the values with which the states of a method begin, as the program's files have
them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from vkrt.executable.states import StateTensor
from vkrt.memory.reader import Reader
from vkrt.runtime.state_memory import StateMemory

# Bytes of a file that are compared with zeros at once
PIECE = 1 << 16


class InitialValues:
    """The initial values of a method's states.

    Args:
        tensors: what the method keeps from run to run.
        sources: `Source`s by number, which have the values.
        prefetch: how they are read, see `vkrt.load`.
    """

    def __init__(self, tensors: Sequence[StateTensor], sources: Sequence[Any], prefetch: str):
        self._tensors = tensors
        self._sources = sources
        self._prefetch = prefetch

    @cached_property
    def zeros(self) -> frozenset[int]:
        """Numbers of the tensors that begin with zeros."""
        # Many of them begin with the same bytes.
        places = {(s.source, s.offset, s.nbytes) for s in self._tensors if not s.is_zero}
        zeros = {place for place in places if _is_zero(self._sources[place[0]], *place[1:])}
        return frozenset(number for number, s in enumerate(self._tensors)
                         if s.is_zero or (s.source, s.offset, s.nbytes) in zeros)

    def give(self, state: StateMemory) -> None:
        """Gives a state that no run uses its initial values.

        Raises:
            FormatError: a file was changed since it was opened.
            OSError: it cannot be read.
        """
        if not self._tensors:
            return
        for source in self._sources:
            source.check_unchanged()
        with Reader(self._sources, self._prefetch) as reader:
            state.reset(reader, self.zeros)


def _is_zero(source: Any, offset: int, nbytes: int) -> bool:
    """Whether bytes of a file are all zero; False where it has not so many."""
    view = memoryview(source)[offset:offset + nbytes]
    return len(view) == nbytes and not any(
        bytes(view[start:start + PIECE]).strip(b"\0") for start in range(0, nbytes, PIECE))
