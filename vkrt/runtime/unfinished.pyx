"""Runs that are over for the host and not for the device.

The device cannot be interrupted. What it works on must then neither be changed nor released until
it is done, and so somebody has to wait before: whoever uses it next, or the exit of the process.
"""

import atexit
import threading
from contextlib import suppress

from cpython.ref cimport Py_INCREF

from vkrt.errors import VulkanError

# What `hold` holds: things with `wait` and `finish_if_done`
UNFINISHED = set()
FINISHING = threading.Lock()

# Hold a graph of which the device is at work on a run, and let go of it when the device is done.
hold, let_go = UNFINISHED.add, UNFINISHED.discard


def finish_done():
    """Lets go of what the device is done with: its owner may have dropped it without closing it.
    One thread at a time; whoever comes meanwhile leaves it to that one."""
    if not FINISHING.acquire(blocking=False):
        return
    try:
        for graph in tuple(UNFINISHED):
            with suppress(VulkanError):  # which is its owner's to hear
                graph.finish_if_done()
    finally:
        FINISHING.release()


def wait_for_all():
    """Waits for everything that the device is still at work on."""
    with suppress(BaseException):  # interrupted again, the process ends without waiting
        for graph in tuple(UNFINISHED):
            graph.wait()
    # What the device is not done with may not be released.
    for graph in UNFINISHED:
        Py_INCREF(graph)


atexit.register(wait_for_all)
