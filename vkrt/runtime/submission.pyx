# cython: language_level=3
"""Submission: giving the device work, and waiting for it in such a way that signals are heard.

A wait is made of slices, and between them Python's handlers of signals run: Ctrl-C raises at once.
The device cannot be interrupted. What it works on must then neither be changed nor released until
it is done, and so somebody has to wait before: whoever uses it next, or the exit of the process.
"""

import atexit
import threading
from contextlib import suppress

from cpython.ref cimport Py_INCREF
from libc.stdint cimport uint64_t

from vkrt.vk.command cimport CommandBuffer, Fence, submit, wait
from vkrt.vk.device cimport Device
from vkrt.vk.interruption cimport check_interruption

from vkrt.errors import VulkanError

# So long, in nanoseconds, a signal may have to wait. Most runs are shorter than one slice.
cdef uint64_t SLICE = 100_000_000

# What `keep` holds: things with `settle` and `settle_if_done`
UNFINISHED = set()
SWEEPING = threading.Lock()


cdef class Submission:
    """One submission at a time and its fence.

    Args:
        device: an open device.
    """

    def __cinit__(self, Device device not None):
        self.device = device
        self.fence = Fence(device)

    cdef int run(self, CommandBuffer commands) except -1:
        with nogil:
            submit(commands, self.fence)
        self.pending = True
        return self.settle()

    cdef int run_to_end(self, CommandBuffer commands) except -1:
        raised = None
        with nogil:
            submit(commands, self.fence)
        self.pending = True
        while self.pending:
            try:
                self.settle()
            except BaseException as error:
                raised = error
        if raised is not None:
            raise raised
        return 0

    cdef int settle(self) except -1:
        cdef int done = 0
        while self.pending:
            # A device that fails is not at work any more.
            self.pending = False
            with nogil:
                done = wait(self.fence, SLICE)
            if not done:
                self.pending = True
                check_interruption()
        return 0

    cdef bint is_done(self) except -1:
        cdef int done = 1
        if self.pending:
            with nogil:
                done = wait(self.fence, 0)
        return done

    def close(self):
        """Releases the fence; nothing may be pending."""
        self.fence.close()


cdef int keep(graph) except -1:
    UNFINISHED.add(graph)
    return 0


cdef int release(graph) except -1:
    UNFINISHED.discard(graph)
    return 0


def sweep():
    """Lets go of what the device is done with: its owner may have dropped it without closing it.
    One thread at a time; whoever comes meanwhile leaves it to that one."""
    if not SWEEPING.acquire(blocking=False):
        return
    try:
        for graph in tuple(UNFINISHED):
            with suppress(VulkanError):  # which is its owner's to hear
                graph.settle_if_done()
    finally:
        SWEEPING.release()


def settle_all():
    """Waits for everything that the device is still at work on."""
    with suppress(BaseException):  # interrupted again, the process ends without waiting
        for graph in tuple(UNFINISHED):
            graph.settle()
    # What the device is not done with may not be released.
    for graph in UNFINISHED:
        Py_INCREF(graph)


atexit.register(settle_all)
