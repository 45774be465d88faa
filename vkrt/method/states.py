"""States of a method: what it keeps from run to run, such as the caches of a language model.

A method has one state from the start. `Program.new_state` makes more. All states of a method share
its weights, pipelines and activations; only the values are a state's own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from vkrt.errors import InputError
from vkrt.executable.states import StateTensor
from vkrt.method.device_bound import DeviceBound
from vkrt.method.loaded import Loaded
from vkrt.method.run_queue import RunQueue
from vkrt.runtime.state_memory import StateMemory

if TYPE_CHECKING:
    import numpy as np


class State(DeviceBound):
    """The values that a method keeps from run to run; see `Program.new_state`.

    A context manager, which releases the memory at its end.

    Attributes:
        method: the `Method` that it belongs to.
        memory: its buffers.
    """

    def __init__(self, method: Any, queue: RunQueue, loaded: Loaded, memory: StateMemory):
        self.method = method
        self.memory = memory
        self._queue = queue
        self._loaded = loaded

    def __repr__(self):
        closed = ", closed" if self.memory.closed else f", {self.nbytes:,} bytes"
        return f"<vkrt.State of method '{self._queue.name}'{closed}>"

    @property
    def nbytes(self) -> int:
        """Bytes of device memory."""
        return self.memory.nbytes

    @contextmanager
    def _turn(self) -> Iterator[StateMemory]:
        """Yields the memory of the state while no run uses it (InputError: the state is closed)."""
        with self._queue.turn():
            if self.memory.closed:
                raise another_state(self._queue.name)
            self._loaded.instances.wait()
            yield self.memory

    def reset(self) -> None:
        """Sets the initial values.

        If this fails, the values are undefined until it is called again.

        Raises:
            FormatError: the file was changed since it was opened.
            OSError: the file cannot be read.
            InputError: the state is closed.
            ClosedError: the method is closed.
            ForkedError: in a process that was forked after the method was loaded.
        """
        with self._turn() as memory:
            self._loaded.memories.reset(memory)

    def save(self) -> dict[str, np.ndarray]:
        """Returns the values as arrays by name; see `reset` for what is raised.

        If the host does not see the device's memory, the call takes 64 KiB of it until it returns.

        Raises:
            VulkanError: the device failed.
        """
        with self._turn() as memory:
            return arrays_of(self._loaded.states.tensors, memory.save())

    def load(self, values: Mapping[str, np.ndarray]) -> None:
        """Sets saved values; see `reset` for what is raised.

        Raises:
            InputError: the values are not of this method.
            VulkanError: the device failed.
        """
        with self._turn() as memory:
            memory.load(bytes_of(self._loaded.states.tensors, values))

    def close(self) -> None:
        """Releases its memory; may be called twice."""
        if self._loaded.device.inherited:
            return
        with self._queue.lock:
            if not self._queue.closed:
                self._queue.wait()
                self._loaded.memories.release(self.memory)

    def __enter__(self) -> State:
        return self

    def __exit__(self, *exception: Any) -> None:
        self.close()


def another_state(method: str) -> InputError:
    """The error for a state that a method of this name cannot use."""
    return InputError(f"method '{method}': the state is closed, or another method's")


def arrays_of(tensors: tuple[StateTensor, ...], values: list[bytearray]) -> dict[str, np.ndarray]:
    import numpy as np

    return {tensor.name: np.frombuffer(value, tensor.dtype).reshape(tensor.sizes)
            for tensor, value in zip(tensors, values, strict=True)}


def bytes_of(tensors: tuple[StateTensor, ...], values: Mapping[str, np.ndarray]) -> list[bytes]:
    """Arrays as bytes, in the order of the states (InputError: they do not fit these)."""
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
        if tensor.dtype == "bool":
            # Memory of other bytes than 0 and 1 may pass for bools.
            array = array.view("uint8") != 0
        result.append(array.tobytes())
    return result
