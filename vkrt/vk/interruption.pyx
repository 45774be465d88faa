"""What ends a wait for the device before the device is done: a signal's handler that raises, in the
main thread, or another thread that has asked for it.
"""

from threading import get_ident

from cpython.exc cimport PyErr_CheckSignals, PyErr_SetObject

from vkrt.errors import CancelledError

# Threads of which the waits are to end, by their identifiers
cdef set cancelled = set()


def cancel(thread):
    """Lets the next check in a thread, or the one it is waiting before, raise CancelledError."""
    cancelled.add(thread)


def forget(thread):
    """Takes that back, where no check has raised it."""
    cancelled.discard(thread)


cdef int check_interruption() except -1:
    PyErr_CheckSignals()
    if cancelled:
        thread = get_ident()
        if thread in cancelled:
            cancelled.discard(thread)
            raise CancelledError("the run was cancelled")
    return 0


cdef int poll_interruption(void* data) noexcept with gil:
    try:
        check_interruption()
    except BaseException as raised:
        PyErr_SetObject(type(raised), raised)
        return 1
    return 0
