"""What a command is waiting for: one line on stderr, which is erased afterwards."""

from __future__ import annotations

import argparse
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TextIO

from vkrt.runtime.pipelines import in_the_making

# Characters of a bar
WIDTH = 20

# Seconds of compiling kernels before the line says so, and seconds between two looks
PATIENCE, INTERVAL = 1.0, 0.1


class Progress:
    """The line; without a stream nothing is written. `clock` gives seconds, `making` the number of
    kernels that are still to be compiled."""

    def __init__(self, stream: TextIO | None, clock: Callable[[], float] = time.monotonic,
                 making: Callable[[], int] = in_the_making):
        self._stream, self._clock, self._making = stream, clock, making
        self._lock = threading.Lock()
        self._text = self._bar = self._shown = ""
        # Since when kernels have been compiled without a break
        self._since: float | None = None

    def say(self, text: str) -> None:
        """Says what the command does now; "" clears the line."""
        with self._lock:
            self._text, self._bar = text, ""
            self._show(text)

    def on_progress(self, phase: str, done: int, total: int) -> None:
        """Shows a bar before the text until all bytes of a part of a load are done. May be the
        `on_progress` of `vkrt.load` and `vkrt.compile`."""
        with self._lock:
            signs = WIDTH * done // max(total, 1)
            self._bar = "" if done == total else (
                f"[{'#' * signs:.<{WIDTH}}] {phase} {done / 1e6:,.0f} of {total / 1e6:,.0f} MB, ")
            self._show(self._bar + self._text)

    def look(self) -> None:
        """Says how many kernels are left to compile, if compiling has been going on for long."""
        with self._lock:
            now, count = self._clock(), self._making()
            if not count:
                self._since = None
            elif self._since is None:
                self._since = now
            is_long = self._since is not None and now - self._since >= PATIENCE
            self._show(f"compiling {count} kernel{'s' if count > 1 else ''} .." if is_long
                       else self._bar + self._text)

    def _show(self, line: str) -> None:
        line = line[:shutil.get_terminal_size().columns - 1]  # what wraps cannot be erased
        if line == self._shown or self._stream is None:
            return
        erased = f"\r{' ' * len(self._shown)}\r" if len(line) < len(self._shown) else "\r"
        self._shown = line
        with suppress(OSError):  # nobody reads it any more
            self._stream.write(erased + line)
            self._stream.flush()


def add_progress(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--progress", action=argparse.BooleanOptionalAction,
                        help="say on stderr what takes long (default: if that is a terminal)")


@contextmanager
def progress_of(options: argparse.Namespace) -> Iterator[Progress]:
    """The progress line of a command, which a thread updates; silent if no line is wanted."""
    wanted = options.progress
    if wanted is None:
        wanted = sys.stderr is not None and sys.stderr.isatty() and not options.json
    progress = Progress(sys.stderr if wanted else None)
    if not wanted:
        yield progress
        return
    done = threading.Event()

    def watch() -> None:
        while not done.wait(INTERVAL):
            progress.look()

    thread = threading.Thread(target=watch, name="vkrt-progress", daemon=True)
    thread.start()
    try:
        yield progress
    finally:
        done.set()
        thread.join()
        progress.say("")
