# cython: language_level=3
"""Devices that were given up: the end of the process waits for them, but not for ever.

A driver that computes, or compiles, on processors of the host does that in threads of its own. They
use what the end of a process takes away: it crashes.
"""

import atexit
import threading

from cpython.pythread cimport (
    PyThread_acquire_lock, PyThread_release_lock, PyThread_type_lock, WAIT_LOCK,
)

from vkrt.vk.api cimport VkDevice

# So long, in seconds, the process stays for all of them: a driver may never be done.
PATIENCE = 5.0

cdef list threads = []


cdef class Wait:
    """A wait for a device, in a thread of its own."""

    cdef VkDevice device
    cdef WaitIdle wait
    cdef PyThread_type_lock lock
    cdef object owner

    def __call__(self):
        with nogil:
            # A thread may be in a call that does not return.
            PyThread_acquire_lock(self.lock, WAIT_LOCK)
            self.wait(self.device)
            PyThread_release_lock(self.lock)
        self.owner = None


cdef int watch_until_idle(VkDevice device, WaitIdle wait, void* lock, owner) except -1:
    cdef Wait waiting = Wait()
    waiting.device, waiting.wait, waiting.owner = device, wait, owner
    waiting.lock = <PyThread_type_lock>lock
    # Not at the end: no thread can be started there.
    thread = threading.Thread(target=waiting, name="vkrt-given-up", daemon=True)
    if not threads:
        atexit.register(wait_for_all)
    threads.append(thread)
    thread.start()
    return 0


def wait_for_all():
    """Waits until the devices that were given up are idle, for `PATIENCE` at most."""
    from time import monotonic

    end = monotonic() + PATIENCE
    for thread in threads:
        thread.join(max(end - monotonic(), 0.0))
