"""The memory of each state of a method."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

from vkrt.executable.states import StatePlan
from vkrt.memory.reader import Reader
from vkrt.method.instances import Instances
from vkrt.report.memory import MemoryReport
from vkrt.runtime.state_memory import StateMemory
from vkrt.work.tensor import Storage


class Memories:
    """The memory of the state that a method has from the start, and of further ones.

    Args:
        device, allocator: of the method.
        states: what a state consists of.
        storages: of the method's first plan.
        sources: of the program's bytes, then of its data files.
        prefetch: how files are read, see `vkrt.load`.
        report: where further states are counted.

    Attributes:
        instances: the method's instances, which use states; None before there are any.
    """

    def __init__(self, device: Any, allocator: Any, states: StatePlan,
                 storages: tuple[Storage, ...], sources: Sequence[Any], prefetch: str,
                 report: MemoryReport):
        self._device = device
        self._allocator = allocator
        self._states = states
        self._storages = storages
        self._sources = sources
        self._prefetch = prefetch
        self._report = report
        self._all: set[StateMemory] = set()
        self.instances: Instances | None = None

    def planned(self) -> StateMemory:
        """A state for which nothing is allocated yet."""
        state = StateMemory(self._device, self._allocator, self._states, self._storages)
        self._all.add(state)
        return state

    def new(self) -> StateMemory:
        """One more state, with the initial values."""
        self._wait()
        state = self.planned()
        try:
            state.allocate()
            self._report.further_state(state.nbytes, self._allocator)
            self.reset(state)
        except BaseException:
            self.release(state)
            raise
        return state

    def reset(self, state: StateMemory) -> None:
        """Sets the initial values of a state, from the program's files. No run may use the state.

        Raises:
            FormatError: a file was changed since it was opened.
            OSError: a file cannot be read.
        """
        if self._states.tensors:
            for source in self._sources:
                source.check_unchanged()
            with Reader(self._sources, self._prefetch) as reader:
                state.reset(reader)

    def release(self, state: StateMemory) -> None:
        """Releases a state that `new` made."""
        self._wait()
        if self.instances is not None:
            self.instances.drop(lambda instance: instance.state is state)
        self._all.discard(state)
        if not state.closed:
            self._report.further_state(-state.nbytes, self._allocator)
        state.close()

    def bytes_beside(self, own: StateMemory) -> int:
        """The bytes of all states but `own`."""
        return sum(state.nbytes for state in self._all if state is not own and not state.closed)

    def close(self) -> None:
        """Releases all of them, even if releasing one fails."""
        with ExitStack() as stack:
            for state in self._all:
                stack.callback(state.close)

    def _wait(self) -> None:
        if self.instances is not None:
            self.instances.wait()
