"""Turns: the one thread that gives work to the device, one step of each job in turn."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Generator
from time import monotonic
from typing import Any

from vkrt.errors import CancelledError, DeviceLostError

# What is delivered after the last item of a job
END = object()
ENDED = "the server has ended"


class Busy(Exception):
    """Too many jobs wait."""


class Job:
    """Work in steps.

    Args:
        steps: does a step, such as a run of a program, for each item.
        deliver: gets the items, then END or the exception that ended the job; in the thread, or in
            `submit` if the job never began.
        deadline: by `time.monotonic`; a job that has not begun by then ends with TimeoutError.

    Attributes:
        cancelled: set by whoever does not want the rest; no more steps are done then.
    """

    def __init__(self, steps: Generator[Any, None, None], deliver: Callable[[Any], object],
                 deadline: float):
        self.steps, self.deliver, self.deadline = steps, deliver, deadline
        self.cancelled = False


class Turns:
    """The thread.

    Args:
        at_once: jobs that take turns.
        waiting: the most jobs that wait until one of these ends.
    """

    def __init__(self, at_once: int, waiting: int):
        self.failure = ""  # why nothing works any more
        self._at_once, self._most_waiting = at_once, waiting
        self._waiting: deque[Job] = deque()
        self._running: list[Job] = []
        self._changed = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._work, name="vkrt-serve", daemon=True)
        self._thread.start()

    @property
    def counts(self) -> tuple[int, int]:
        """Jobs that run, and that wait."""
        with self._changed:
            return len(self._running), len(self._waiting)

    def submit(self, job: Job) -> None:
        """Adds a job.

        Raises:
            Busy: too many wait.
            CancelledError: `end` was called.
        """
        with self._changed:
            if self._closed:
                raise CancelledError(ENDED)
            self._fill()
            if (len(self._waiting) >= self._most_waiting
                    and len(self._running) >= self._at_once):
                raise Busy
            self._waiting.append(job)
            self._fill()
            self._changed.notify()

    def end(self) -> None:
        """Lets all jobs end with CancelledError after the step that is being done, and refuses
        further ones; also for handlers of signals."""
        with self._changed:
            self._closed = True
            self._changed.notify()

    def close(self) -> None:
        """Ends all jobs as `end` does, and waits for the thread; may be called twice."""
        self.end()
        self._thread.join()

    def _work(self) -> None:
        while jobs := self._begun():
            for job in jobs:
                if self._closed:
                    break
                last = self._advance(job)
                if last is not None:
                    # Before the last item is delivered: whoever gets that may submit a job at once.
                    with self._changed:
                        self._running.remove(job)
                    job.deliver(last)
        for job in (*self._running, *self._waiting):
            job.steps.close()
            job.deliver(CancelledError(ENDED))

    def _begun(self) -> list[Job]:
        """The jobs that take turns; waits until there is one. Empty at the end."""
        with self._changed:
            self._fill()
            self._changed.wait_for(lambda: self._closed or self._running)
            return [] if self._closed else list(self._running)

    def _fill(self) -> None:
        """Ends waiting jobs that are cancelled or too late, and gives free places to others."""
        for job in [j for j in self._waiting if j.cancelled or monotonic() > j.deadline]:
            self._waiting.remove(job)
            job.deliver(TimeoutError())
        while self._waiting and len(self._running) < self._at_once:
            self._running.append(self._waiting.popleft())

    def _advance(self, job: Job) -> Any:
        """Does a step; returns None, or after the last step what is delivered then."""
        try:
            if not job.cancelled:
                job.deliver(next(job.steps))
                return None
            job.steps.close()
        except StopIteration:
            pass
        except Exception as error:
            if isinstance(error, DeviceLostError):
                self.failure = str(error)
            return error
        return END
