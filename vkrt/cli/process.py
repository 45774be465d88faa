"""How the process of a command ends: exit codes, and Ctrl-C."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import Any

EXIT_FAILED = 1
EXIT_INTERRUPTED = 130  # as a shell reports the end by SIGINT
# Seconds that an interrupted command has to clean up. What is left then, such as the work of a CPU
# driver, ends with the process.
GRACE = 0.3
# Python writes signals to this descriptor, for the thread that ends the process; -1: to none
_wakeup = -1


def say(text: str) -> None:
    """Writes a line to stderr, also from a thread and at the end of the process."""
    with suppress(OSError):
        os.write(2, f"vkrt: {text}\n".encode())


def end_after_interrupt() -> None:
    """Starts a thread that ends the process `GRACE` seconds after Ctrl-C, if it runs on till then.
    Python handles signals only between its own instructions, and drivers compile for seconds."""
    import signal
    import threading
    import time

    global _wakeup
    read, _wakeup = os.pipe()
    os.set_blocking(_wakeup, False)
    signal.set_wakeup_fd(_wakeup)
    sys.unraisablehook = _not_raised

    def end() -> None:
        while signal.SIGINT not in (signals := os.read(read, 64)):
            if not signals:
                return  # the command handles Ctrl-C itself
        time.sleep(GRACE)
        say("interrupted")
        os._exit(EXIT_INTERRUPTED)

    threading.Thread(target=end, name="vkrt-interrupt", daemon=True).start()


def _not_raised(found: Any) -> None:
    """Shows exceptions that nobody can catch, except Ctrl-C, which the thread handles."""
    if not isinstance(found.exc_value, KeyboardInterrupt):
        sys.__unraisablehook__(found)


def take_interrupts() -> None:
    """From here on the command handles Ctrl-C itself: it may go on."""
    import signal

    global _wakeup
    if _wakeup >= 0:
        signal.set_wakeup_fd(-1)
        os.close(_wakeup)
        _wakeup = -1
