"""States of a method: what it keeps from run to run, such as the caches of a language model.

A method has one from the start. `Program.new_state` makes further ones, which share its weights,
pipelines and activations and have nothing of their own but their values.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from vkrt.errors import InputError
from vkrt.executable.states import StateTensor
from vkrt.method.device_bound import DeviceBound

if TYPE_CHECKING:
    import numpy as np

    from vkrt.method.method import Method
    from vkrt.runtime.state_memory import StateMemory

PIECE = 1 << 16


def is_zero(source: Any, offset: int, nbytes: int) -> bool:
    """Whether bytes of a file are all zero; False where it has not so many."""
    view = memoryview(source)[offset:offset + nbytes]
    return len(view) == nbytes and not any(
        bytes(view[start:start + PIECE]).strip(b"\0") for start in range(0, nbytes, PIECE))


class State(DeviceBound):
    """One value of what a method keeps from run to run; see `Program.new_state`.

    A context manager: at its end the memory is released.

    Attributes:
        method: whose it is.
    """

    def __init__(self, method: Method, memory: StateMemory):
        self.method = method
        self.memory = memory

    def __repr__(self):
        closed = ", closed" if self.memory.closed else f", {self.nbytes:,} bytes"
        return f"<vkrt.State of method '{self.method.metadata.name}'{closed}>"

    @property
    def nbytes(self) -> int:
        """Bytes of device memory."""
        return self.memory.nbytes

    def reset(self) -> None:
        """Gives it the initial values. See `Method.reset_state` for what is raised."""
        self.method.reset_state(self)

    def save(self) -> dict[str, np.ndarray]:
        """Its values, as `Method.save_state`."""
        return self.method.save_state(self)

    def load(self, values: Mapping[str, np.ndarray]) -> None:
        """Gives it saved values, as `Method.load_state`."""
        self.method.load_state(values, self)

    def close(self) -> None:
        """Releases its memory; may be called twice."""
        self.method.close_state(self)

    def __enter__(self) -> State:
        return self

    def __exit__(self, *exception: Any) -> None:
        self.close()


def arrays_of(tensors: tuple[StateTensor, ...], values: list[bytearray]) -> dict[str, np.ndarray]:
    """Saved bytes as arrays, by the names of the states."""
    import numpy as np

    return {tensor.name: np.frombuffer(value, tensor.dtype).reshape(tensor.sizes)
            for tensor, value in zip(tensors, values, strict=True)}


def bytes_of(tensors: tuple[StateTensor, ...], values: Mapping[str, np.ndarray]) -> list[bytes]:
    """Arrays as bytes, in the order of the states.

    Raises:
        InputError: a name is missing or too many, or an array has another dtype or other sizes.
    """
    import numpy as np

    names = [tensor.name for tensor in tensors]
    if set(values) != set(names):
        raise InputError(f"expected values of {', '.join(names) or 'nothing'}, got "
                         f"{', '.join(map(str, values)) or 'nothing'}")
    result = []
    for tensor in tensors:
        array = np.asarray(values[tensor.name])
        if array.shape != tensor.sizes or str(array.dtype) != tensor.dtype:
            raise InputError(f"'{tensor.name}': expected {tensor.dtype}{list(tensor.sizes)}, got "
                             f"{array.dtype}{list(array.shape)}")
        result.append(array.tobytes())
    return result
