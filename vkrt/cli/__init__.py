"""The command line: a module for each command, and what they share (common).

`command` is the entry point: it imports the commands only when it is ready for Ctrl-C.
"""

from __future__ import annotations

import os

from vkrt.cli.process import EXIT_FAILED, EXIT_INTERRUPTED, end_after_interrupt, say
from vkrt.errors import PackageError


def command() -> int:
    """Runs the command of this process; returns its exit code, see `vkrt.cli.main`."""
    try:
        end_after_interrupt()
        from vkrt.cli.main import main

        code = main()
    except KeyboardInterrupt:
        code = EXIT_INTERRUPTED
        say("interrupted")
    except PackageError as error:
        code = EXIT_FAILED
        say(str(error))
    if code == EXIT_INTERRUPTED:
        os._exit(code)  # does not wait for work that the device still has
    return code
