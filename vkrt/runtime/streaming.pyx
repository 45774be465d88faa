"""Streaming: weights come to their places in the pool while the device computes. The core does it,
in a thread of its own (`vkrt.core.streamer`)."""

cimport cython

from vkrt.core cimport streamer as core
from vkrt.core.error cimport Error
from vkrt.core.uploads cimport open_uploader
from vkrt.vk.check cimport check_status
from vkrt.vk.device cimport Device
from vkrt.vk.memory cimport Allocator


@cython.no_gc_clear
cdef class Streamer:
    """What brings streamed weights to their places; starts at once with the first of them.

    Args:
        device: an open device.
        allocator: whose account the staging buffer is on.
        reader: of the program's sources. The streamer closes it, as nobody else can say when its
            thread is done with it.
        rows: of the method's weights.
        handles: of the pool, which is bound.
    """

    def __cinit__(self, Device device not None, Allocator allocator not None,
                  Reader reader not None, Rows rows not None, Handles handles not None):
        cdef Error error
        self.reader, self.rows, self.handles = reader, rows, handles
        check_status(open_uploader(&allocator.core, &reader.reader, rows.weights, &handles.core,
                                   &self.core.uploader, &error), &error)
        check_status(core.open_streamer(rows.weights, &handles.core, &self.core, &error), &error)

    def close(self):
        """Ends the thread, waits for what the device copies, and closes the reader."""
        with nogil:
            core.close_streamer(&self.core)
        if self.reader is not None:
            self.reader.close()

    def __del__(self):
        # Not __dealloc__: the garbage collector may have taken the pool and the file away by then.
        self.close()
