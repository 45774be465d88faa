"""InitialValues: the initial values of a method's states, read from the program's files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from vkrt.executable.states import StateTensor
from vkrt.memory.reader import Reader
from vkrt.runtime.state_memory import StateMemory


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

    def give(self, state: StateMemory) -> None:
        """Sets the initial values of a state. No run may use the state.

        Raises:
            FormatError: a file was changed since it was opened.
            OSError: a file cannot be read.
        """
        if not self._tensors:
            return
        for source in self._sources:
            source.check_unchanged()
        with Reader(self._sources, self._prefetch) as reader:
            state.reset(reader)
