"""Stopwatch: how long the parts of a load take, one after the other."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

# Gets the name of a part, how many bytes of it are done, and how many there are
OnProgress = Callable[[str, int, int], object]


class Span(NamedTuple):
    """A part of a load.

    Attributes:
        name: what was done.
        start: on `time.perf_counter`.
        seconds: how long it took.
        cpu: seconds of all threads of the process meanwhile, the driver's included.
    """

    name: str
    start: float
    seconds: float
    cpu: float


@dataclass
class Stopwatch:
    """Spans that follow each other: `start`, and `mark` at the end of every part.

    Attributes:
        spans: the parts so far.
        on_progress: called when a part is done, and before that too if bytes of the part are
            counted; an exception from it ends the load.
    """

    spans: list[Span] = field(default_factory=list)
    on_progress: OnProgress | None = field(default=None, repr=False)
    _wall: float = field(default_factory=time.perf_counter, repr=False)
    _cpu: float = field(default_factory=time.process_time, repr=False)

    def start(self) -> None:
        """The next part begins now, not where the last one ended."""
        self._wall, self._cpu = time.perf_counter(), time.process_time()

    def mark(self, name: str, nbytes: int = 0) -> None:
        """Ends a part, of which `nbytes` were counted, and begins the next."""
        wall, cpu = time.perf_counter(), time.process_time()
        self.spans.append(Span(name, self._wall, wall - self._wall, cpu - self._cpu))
        self._wall, self._cpu = wall, cpu
        if self.on_progress is not None:
            self.on_progress(name, nbytes, nbytes)

    def table(self) -> str:
        """The parts as lines of text."""
        rows = [*self.spans, Span("together", 0, sum(s.seconds for s in self.spans),
                                  sum(s.cpu for s in self.spans))]
        return "\n".join(f"{span.name:<24}{1e3 * span.seconds:>9.1f} ms"
                         f"{1e3 * span.cpu:>9.1f} ms CPU" for span in rows)
