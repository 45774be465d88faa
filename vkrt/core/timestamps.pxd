"""Timestamps: times on the device's clock, noted by command buffers."""

from libc.stdint cimport uint32_t, uint64_t

from vkrt.core.command cimport CommandBuffer
from vkrt.core.device cimport Device
from vkrt.core.error cimport Error
from vkrt.core.vulkan cimport VkQueryPool

cdef struct TimestampQueries:
    Device* device
    VkQueryPool handle
    uint32_t size

cdef extern nogil:
    # VKRT_ERROR_UNSUPPORTED where the device's queue has none.
    int make_timestamps "vkrt_make_timestamps"(Device* device, uint32_t size,
                                               TimestampQueries* queries, Error* error)
    void close_timestamps "vkrt_close_timestamps"(TimestampQueries* queries)
    # Resets all of them; then each `write_timestamp` is of the moment all commands before it are
    # done.
    void reset_timestamps "vkrt_reset_timestamps"(const CommandBuffer* commands,
                                                  const TimestampQueries* queries)
    void write_timestamp "vkrt_write_timestamp"(const CommandBuffer* commands,
                                                const TimestampQueries* queries, uint32_t index)
    # Reads `number` values from the one of index `first`; `written` is whether all were there.
    int read_timestamps "vkrt_read_timestamps"(const TimestampQueries* queries, uint64_t* ticks,
                                               uint32_t first, uint32_t number, bint* written,
                                               Error* error)
