"""Run: a run that `run_async` has begun, to be waited for later."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from time import monotonic
from typing import Any

from vkrt.method.device_bound import DeviceBound

# Seconds between two looks of a waiting thread whether another thread has finished the run
_SLICE = 0.1


class Run(DeviceBound):
    """A run in progress, or done; made by `vkrt.Program.run_async`.

    Any thread may wait for it, and a coroutine may `await` it. Until it is done, nobody may change,
    read or destroy its inputs and outputs.

    Attributes:
        copied_bytes: bytes that the device copies because kernels cannot use some host buffers in
            place; 0 if it copies nothing.
    """

    def __init__(self, copied_bytes: int, is_done: Callable[[], bool] | None = None,
                 finish: Callable[[Run], None] | None = None):
        self.copied_bytes = copied_bytes
        # For a run on the device: whether the device is done, and what ends the run by `set` or
        # `fail`. Other runs are ended by a thread of their own.
        self._is_done = is_done
        self._finish = finish
        self._ended = threading.Event()
        self._outputs: list[Any] = []
        self._error: BaseException | None = None

    def set(self, outputs: list[Any]) -> None:
        """Ends it with these outputs."""
        self._outputs = outputs
        self._end()

    def fail(self, error: BaseException) -> None:
        """Ends it with an error, which `result` raises."""
        self._error = error
        self._end()

    def _end(self) -> None:
        self._ended.set()
        self._is_done = self._finish = None

    @property
    def ended(self) -> bool:
        """Whether the outputs, or what went wrong, are known."""
        return self._ended.is_set()

    def wait(self) -> None:
        """Waits until another thread has ended it."""
        self._ended.wait()

    def done(self) -> bool:
        """Whether `result` returns or raises without a wait."""
        is_done = self._is_done
        return self.ended or is_done is not None and is_done()

    def result(self, timeout: float | None = None) -> list[Any]:
        """Waits for the run, `timeout` seconds at most.

        Returns:
            The outputs as `vkrt.Program.run` returns them; `DeviceBuffer`s in their places.

        Raises:
            TimeoutError: the run takes longer; it goes on.
            CancelledError: another thread has called `cancel`.
            VulkanError: the device failed, or what else `vkrt.Program.run` raises.
        """
        end = None if timeout is None else monotonic() + timeout
        while not self.ended:
            finish = self._finish
            if finish is not None and (end is None or self.done()):
                finish(self)
                continue
            left = _SLICE if end is None else min(_SLICE, end - monotonic())
            if left <= 0:
                raise TimeoutError(f"the run takes longer than {timeout} s")
            # The device notifies nobody: it is polled every millisecond.
            self._ended.wait(left if finish is None else min(left, 0.001))
        if self._error is not None:
            raise self._error
        return self._outputs

    def __await__(self) -> Generator[Any, None, list[Any]]:
        """Waits as `result` does, in a coroutine: a thread of the event loop waits."""
        import asyncio  # large; whoever awaits has imported it

        return asyncio.get_running_loop().run_in_executor(None, self.result).__await__()
