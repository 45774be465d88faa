"""What the handles of vkrt.h stand for. A handle is a number that is never used twice, so that a
closed one is an error and not another program."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from vkrt.capi import sharing
from vkrt.errors import ClosedError, InputError
from vkrt.executable.external_buffers import DeviceBuffer, Semaphore
from vkrt.method.method import Method
from vkrt.method.run import Run
from vkrt.method.states import State
from vkrt.program.program import Program

T = TypeVar("T")
_numbers = itertools.count(1)


class Handles(Generic[T]):
    """The open handles of one kind.

    Args:
        kind: what they are, for messages.
    """

    def __init__(self, kind: str):
        self._kind = kind
        self._open: dict[int, T] = {}

    def add(self, thing: T) -> int:
        """A handle for a thing."""
        number = next(_numbers)
        self._open[number] = thing
        return number

    def get(self, number: int) -> T:
        """What an open handle stands for.

        Raises:
            ClosedError: the handle is closed, or never was one.
        """
        try:
            return self._open[number]
        except KeyError:
            raise self._closed() from None

    def take(self, number: int) -> T | None:
        """What an open handle stands for, and closes the handle; None for handle 0."""
        if number == 0:
            return None
        try:
            return self._open.pop(number)
        except KeyError:
            raise self._closed() from None

    def drop(self, gone: Callable[[T], bool]) -> None:
        """Closes the handles of things for which `gone` is true."""
        for number, thing in tuple(self._open.items()):
            if gone(thing):
                self._open.pop(number, None)

    def _closed(self) -> ClosedError:
        return ClosedError(f"the {self._kind} is closed, or never was one")


@dataclass(frozen=True)
class OpenState:
    """A state and the handle of the program that it belongs to."""

    program: int
    state: State


programs: Handles[Program] = Handles("program")
states: Handles[OpenState] = Handles("state")
# The run of a program's method that was submitted last
runs: dict[tuple[int, str], Run] = {}


def method_of(program: int, name: str | None) -> Method:
    """A method of a program, loaded.

    Raises:
        InputError: there is no such method.
        ClosedError: the program is closed.
    """
    return programs.get(program).load_method(name or "forward")


def state_of(method: Method, number: int) -> State:
    """The state that a handle stands for; the method's first for handle 0.

    Raises:
        InputError: the state is another method's.
        ClosedError: the state is closed.
    """
    if number == 0:
        return method.state
    state = states.get(number).state
    if state.method is not method:
        raise InputError(f"the state is not one of method '{method.metadata.name}'")
    return state


def close_program(number: int) -> None:
    """Closes a program and the handles of its states."""
    program = programs.take(number)
    if program is not None:
        states.drop(lambda opened: opened.program == number)
        for begun in [key for key in runs if key[0] == number]:
            runs.pop(begun, None)
        program.close()
        sharing.closed(number)


def new_state(program: int, method: str | None) -> int:
    """Makes one more state of a method; returns its handle."""
    return states.add(OpenState(program, method_of(program, method).new_state()))


def close_state(number: int) -> None:
    """Closes a state."""
    opened = states.take(number)
    if opened is not None:
        opened.state.close()


def submit_run(program: int, method: str | None, state: int, inputs: Sequence[DeviceBuffer],
               outputs: Sequence[DeviceBuffer], waits: Sequence[Semaphore],
               signals: Sequence[Semaphore]) -> int:
    """Begins a run, see `vkrt.Program.run_async`; returns the bytes that the device copies."""
    loaded = method_of(program, method)
    run = loaded.start(inputs, outputs, state_of(loaded, state), waits, signals)
    runs[program, loaded.metadata.name] = run
    return run.copied_bytes


def wait_for_run(program: int, method: str | None) -> None:
    """Waits for the run that was submitted last, and raises what went wrong in it."""
    run = runs.get((program, method_of(program, method).metadata.name))
    if run is not None:
        run.result()
