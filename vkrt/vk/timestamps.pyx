# cython: language_level=3
"""Timestamps: times on the device's clock, noted by command buffers."""

cimport cython
from libc.stdint cimport uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from vkrt.vk.api cimport *
from vkrt.vk.check cimport QUERY_POOL, check
from vkrt.vk.command cimport CommandBuffer, need

from vkrt.errors import UnsupportedError


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
        cdef VkQueryPoolCreateInfo info
        cdef VkQueryPool handle = NULL
        if device.timestamp_bits == 0:
            raise UnsupportedError(f"{device.info.name} has no timestamps")
        memset(&info, 0, sizeof(info))
        info.sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO
        info.queryType = VK_QUERY_TYPE_TIMESTAMP
        info.queryCount = size
        device.retain()
        self.device = device
        self.size = size
        device.created(device.vk.vkCreateQueryPool(device.handle, &info, NULL, &handle),
                       QUERY_POOL, b"vkCreateQueryPool")
        self.handle = handle

    cdef int read_ticks(self, uint64_t* ticks, uint32_t first, uint32_t number) except -1 nogil:
        need(self.handle)
        cdef uint64_t mask = <uint64_t>-1
        cdef uint32_t i
        cdef int result = check(
            self.device.vk.vkGetQueryPoolResults(self.device.handle, self.handle, first, number,
                                                 number * sizeof(uint64_t), ticks,
                                                 sizeof(uint64_t), VK_QUERY_RESULT_64_BIT),
            b"vkGetQueryPoolResults")
        if self.device.timestamp_bits < 64:
            mask = (<uint64_t>1 << self.device.timestamp_bits) - 1
        for i in range(number):
            ticks[i] &= mask
        return result == VK_SUCCESS

    def record_reset(self, CommandBuffer commands not None):
        """Resets all timestamps; comes before any of them is written."""
        need(commands.handle)
        need(self.handle)
        commands.reset_timestamps(self.handle, self.size)

    def record(self, CommandBuffer commands not None, uint32_t index):
        """Notes the time at which all commands before are done."""
        if index >= self.size:
            raise IndexError(f"timestamp {index} of {self.size}")
        need(commands.handle)
        need(self.handle)
        commands.write_timestamp(self.handle, index)

    def read(self):
        """The times in nanoseconds (of no particular start) as a list, or None if one is missing.

        Call it after the submission's fence.
        """
        cdef uint64_t* ticks = <uint64_t*>calloc(self.size + 1, sizeof(uint64_t))
        if ticks == NULL:
            raise MemoryError
        try:
            if not self.read_ticks(ticks, 0, self.size):
                return None
            return [ticks[i] * self.device.timestamp_period for i in range(self.size)]
        finally:
            free(ticks)

    def close(self):
        """Destroys the queries."""
        self.destroy()

    cdef void destroy(self) noexcept:
        cdef VkQueryPool handle = self.handle
        if handle == NULL:
            return
        self.handle = NULL
        self.device.vk.vkDestroyQueryPool(self.device.handle, handle, NULL)
        self.device.destroyed(QUERY_POOL)

    def __dealloc__(self):
        self.destroy()
