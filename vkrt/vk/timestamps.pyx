# cython: language_level=3
"""Timestamps: times on the device's clock, noted by command buffers."""

cimport cython
from libc.stdint cimport uint32_t, uint64_t
from libc.stdlib cimport calloc, free

from vkrt.core.error cimport Error
from vkrt.core.timestamps cimport (
    close_timestamps, make_timestamps, read_timestamps, reset_timestamps, write_timestamp,
)
from vkrt.vk.check cimport check_status
from vkrt.vk.command cimport CommandBuffer, check_open
from vkrt.vk.device cimport Device


@cython.no_gc_clear
cdef class TimestampQueries:
    """Times on the device's clock, noted by command buffers.

    Args:
        device: an open device.
        size: how many.

    Raises:
        UnsupportedError: the device's queue has no timestamps.
    """

    def __cinit__(self, Device device not None, uint32_t size):
        cdef Error error
        self.device = device
        check_status(make_timestamps(&device.core, size, &self.core, &error), &error)

    cdef int read_ticks(self, uint64_t* ticks, uint32_t first, uint32_t number) except -1 nogil:
        cdef Error error
        cdef bint written = False
        check_status(read_timestamps(&self.core, ticks, first, number, &written, &error), &error)
        return written

    def record_reset(self, CommandBuffer commands not None):
        """Resets all timestamps; comes before any of them is written."""
        check_open(commands.core.handle)
        check_open(self.core.handle)
        reset_timestamps(&commands.core, &self.core)

    def record(self, CommandBuffer commands not None, uint32_t index):
        """Notes the time at which all commands before are done."""
        if index >= self.core.size:
            raise IndexError(f"timestamp {index} of {self.core.size}")
        check_open(commands.core.handle)
        check_open(self.core.handle)
        write_timestamp(&commands.core, &self.core, index)

    def read(self):
        """The times in nanoseconds (of no particular start) as a list, or None if one is missing.

        Call it after the submission's fence.
        """
        cdef uint32_t size = self.core.size
        cdef uint64_t* ticks = <uint64_t*>calloc(size + 1, sizeof(uint64_t))
        if ticks == NULL:
            raise MemoryError
        try:
            if not self.read_ticks(ticks, 0, size):
                return None
            return [ticks[i] * self.device.core.timestamp_period for i in range(size)]
        finally:
            free(ticks)

    def close(self):
        """Destroys the queries."""
        close_timestamps(&self.core)

    def __dealloc__(self):
        close_timestamps(&self.core)
