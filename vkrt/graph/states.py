"""States: buffers that a method changes in place and that keep their value from run to run.

In a delegate a state is a constant that a prepack copies to a value which operators write again, or
a constant that an operator changes in place, such as an attention cache. Outside of delegates it is
planned memory that a kernel changes in place, or that begins with data of the file. In the graph
every tensor is written once: a state is a tensor for the value before the run and one for the value
after it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from vkrt.errors import FormatError
from vkrt.pte import OperatorCall, ValueList
from vkrt.work.tensor import Constant, Tensor

PREPACK = "et_vk.prepack.default"


@dataclass(eq=False)
class State:
    """A buffer of a method that keeps its value."""

    initial: Constant  # its value before the first run
    before: Tensor  # the tensor with the value that a run begins with; no node makes it
    after: Tensor  # the tensor with the value that a run leaves


def changed_in_place(chain: Sequence[OperatorCall], values: Sequence[Any],
                     mutated: Callable[[str], Sequence[int]]) -> frozenset[int]:
    """Ids of the values that a prepack makes and a later operator writes."""
    packed: set[int] = set()
    changed: set[int] = set()
    for call in chain:
        if not call.args:
            continue
        value = values[call.args[-1]]
        outs = value.ids if isinstance(value, ValueList) else call.args[-1:]
        outs = (*outs, *(call.args[place] for place in mutated(call.name)
                         if place < len(call.args) - 1))
        changed.update(out for out in outs if out in packed)
        if call.name == PREPACK:
            packed.update(outs)
    return frozenset(changed)


class States:
    """The states of a method whose graph is being built.

    Each state belongs to a delegate of the program: a second call of the delegate continues with
    the value that the first call has left. States of the program itself have the number `OUTSIDE`.
    """

    OUTSIDE = -1

    def __init__(self) -> None:
        self._states: dict[tuple[int, int], State] = {}

    def __iter__(self):
        return iter(self._states.values())

    def by_delegate(self) -> list[tuple[int, State]]:
        return [(delegate, state) for (delegate, _), state in self._states.items()]

    def enter(self, delegate: int, value_id: int, source: Tensor, declared: Tensor) -> Tensor:
        """The current value of a state, at the delegate's prepack of it.

        Args:
            source: the constant with its initial value.
            declared: the result of the prepack, as the file declares it: FormatError if it has
                other sizes.
        """
        key = delegate, value_id
        if key not in self._states:
            assert source.constant is not None
            if source.sizes != declared.sizes:
                raise FormatError(f"{declared.name}: a buffer of sizes {list(declared.sizes)} with "
                                  f"an initial value of {list(source.sizes)}")
            before = replace(declared, constant=None)
            self._states[key] = State(source.constant, before, before)
        return self._states[key].after

    def keep(self, value_id: int, tensor: Tensor, initial: Constant) -> None:
        self._states[self.OUTSIDE, value_id] = State(initial, tensor, tensor)

    def is_kept(self, value_id: int) -> bool:
        return (self.OUTSIDE, value_id) in self._states

    def give(self, value_id: int, tensor: Tensor) -> None:
        self._states[self.OUTSIDE, value_id].after = tensor

    def write(self, delegate: int, value_id: int) -> Tensor:
        state = self._states[delegate, value_id]
        state.after = replace(state.after)
        return state.after
