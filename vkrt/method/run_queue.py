"""RunQueue: one thread at a time uses a method, and runs keep the order of the calls."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from vkrt.errors import ClosedError, VulkanError
from vkrt.method.run import Run
from vkrt.vk import interruption


class RunQueue:
    """Turns at a method.

    Attributes:
        lock: held by the thread whose turn it is.
        closed: whether the method is closed.
    """

    def __init__(self, device: Any, name: str):
        self.name = name
        self.lock = threading.Lock()
        self.closed = False
        self._device = device
        # Guards `_runner`, the thread that runs the method, which `cancel` reads
        self._runner_lock = threading.Lock()
        self._runner: int | None = None
        # Waits for the run that was left to the device or to a thread
        self._in_flight: Callable[[], None] | None = None

    @contextmanager
    def turn(self) -> Iterator[None]:
        """A turn at the method, after the run that was begun last.

        Raises:
            ClosedError: the method is closed.
            ForkedError: in a process that was forked after the method was loaded.
        """
        self._device.check_process()
        with self.lock:
            self.check_open()
            self.wait()
            yield

    def check_open(self) -> None:
        if self.closed:
            raise ClosedError(f"method '{self.name}' is closed; load the program again")

    def wait(self) -> None:
        """Waits for the run that was left to the device or to a thread, if there is one. The
        calling thread must have the turn."""
        if self._in_flight is not None:
            self._in_flight()

    @contextmanager
    def running(self) -> Iterator[None]:
        """A run by this thread, which others may cancel."""
        thread = threading.get_ident()
        with self._runner_lock:
            self._runner = thread
        try:
            yield
        finally:
            with self._runner_lock:
                self._runner = None
                interruption.forget(thread)

    def cancel(self) -> None:
        """Ends the run of another thread; does nothing if there is none."""
        with self._runner_lock:
            if self._runner is not None:
                interruption.cancel(self._runner)

    # Runs that go on after the turn in which they were begun

    def left_on_device(self, copied_bytes: int, is_done: Callable[[], bool],
                       collect: Callable[[], list[Any]]) -> Run:
        """A run that was submitted to the device; `collect` waits for it and gives the outputs."""
        run = Run(copied_bytes, lambda: self._is_done(run, is_done), self._finish)
        self._in_flight = lambda: self._end(run, collect)
        return run

    def leave_to_thread(self, run: Run, carry_out: Callable[[], None]) -> None:
        """Lets a thread carry out a run, without the lock: whoever holds the lock waits for the run
        first."""
        # The first claim decides: the thread's, or that of a later call that finds no thread,
        # because a signal handler raised while the thread was started.
        claims: list[str] = []

        def work() -> None:
            claims.append("thread")
            if claims[0] != "thread":
                return
            try:
                carry_out()
            except BaseException as error:
                run.fail(error)

        def join() -> None:
            if thread.ident is None:
                claims.append("nobody")
            if claims[:1] != ["nobody"]:
                run.wait()
            self._in_flight = None

        thread = threading.Thread(target=work, name=f"vkrt {self.name}", daemon=True)
        self._in_flight = join
        thread.start()

    def _is_done(self, run: Run, is_done: Callable[[], bool]) -> bool:
        """Whether the device is done with a run. False if another call holds the lock, which may be
        waiting for the run."""
        if not self.lock.acquire(blocking=False):
            return False
        try:
            return run.ended or is_done()
        finally:
            self.lock.release()

    def _finish(self, run: Run) -> None:
        """Waits for a run that was begun, unless another call has done so."""
        with self.lock:
            if not run.ended:
                with self.running():
                    self.wait()

    def _end(self, run: Run, collect: Callable[[], list[Any]]) -> None:
        try:
            outputs = collect()
        except VulkanError as error:
            run.fail(error)
        else:
            run.set(outputs)
        self._in_flight = None
