"""Run: a run that `run_async` has begun, to be waited for later."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from time import monotonic
from typing import Any

from vkrt.method.device_bound import DeviceBound

# A waiting thread looks so often, in seconds, whether somebody else has finished the run.
_SLICE = 0.1


class Run(DeviceBound):
    """A run in progress, or done; made by `vkrt.Program.run_async`.

    Any thread may wait for it, also `await` in a coroutine. Until it is done, what it was given is
    neither changed nor read nor destroyed.

    Attributes:
        copied_bytes: bytes that the device copies because kernels cannot use buffers of the host's
            in place; 0 where it copies nothing.
    """

    def __init__(self, copied_bytes: int, is_done: Callable[[], bool] | None = None,
                 finish: Callable[[Run], None] | None = None):
        self.copied_bytes = copied_bytes
        # Of a run that the device is at: whether it is done with it, and what ends it by `set` or
        # `fail`. Others are ended by a thread of their own.
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
        """Ends it with what `result` raises."""
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
        """Whether `result` would not wait."""
        is_done = self._is_done
        return self.ended or is_done is not None and is_done()

    def result(self, timeout: float | None = None) -> list[Any]:
        """Waits for the run, `timeout` seconds at most.

        Returns:
            The outputs, as `vkrt.Program.run` does; in the place of the host's buffers those.

        Raises:
            TimeoutError: it takes longer; it goes on.
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
            # The device tells nobody: it is asked, soon at first.
            self._ended.wait(left if finish is None else min(left, 0.001))
        if self._error is not None:
            raise self._error
        return self._outputs

    def __await__(self) -> Generator[Any, None, list[Any]]:
        """The same in a coroutine: a thread of the event loop waits."""
        import asyncio  # which is large, and whoever awaits has it

        return asyncio.get_running_loop().run_in_executor(None, self.result).__await__()
