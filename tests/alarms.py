"""Interrupts vkrt where tests want it, as Ctrl-C would, by SIGALRM."""

import signal
import sys
from contextlib import contextmanager
from pathlib import Path

import vkrt


class Interrupted(Exception):
    """What Ctrl-C does, without ending the tests."""


@contextmanager
def on_alarm(handler):
    """Calls `handler` at SIGALRM, which the block asks for with `signal.setitimer`.

    Where Python cannot raise `Interrupted`, as in the callback of a weak reference, it reports it.
    Whoever keeps the report, as pytest does, keeps every frame below and what their variables hold:
    it is dropped here.
    """
    def unraisable(report):
        if not isinstance(report.exc_value, Interrupted):
            former_hook(report)

    former_hook, sys.unraisablehook = sys.unraisablehook, unraisable
    former = signal.signal(signal.SIGALRM, handler)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, former)
        sys.unraisablehook = former_hook


def within_vkrt(frame) -> bool:
    """Whether it is vkrt that is interrupted, rather than the test."""
    return Path(vkrt.__file__).parent in Path(frame.f_code.co_filename).parents
