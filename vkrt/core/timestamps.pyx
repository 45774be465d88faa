from libc.string cimport memset

from vkrt.core.device cimport create_child, destroy_child
from vkrt.core.error cimport VKRT_ERROR_UNSUPPORTED, VKRT_OK, fail, need
from vkrt.core.live cimport QUERY_POOL
from vkrt.core.results cimport check_result
from vkrt.core.vulkan cimport *


cdef int make_timestamps(Device* device, uint32_t size, TimestampQueries* queries,
                         Error* error) noexcept nogil:
    cdef VkQueryPoolCreateInfo info
    memset(queries, 0, sizeof(queries[0]))
    if device.timestamp_bits == 0:
        return fail(error, VKRT_ERROR_UNSUPPORTED, b"%s has no timestamps", device.name)
    clear_struct(&info, VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO)
    info.queryType = VK_QUERY_TYPE_TIMESTAMP
    info.queryCount = size
    queries.device, queries.size = device, size
    return create_child(device, QUERY_POOL, &info, &queries.handle, error)


cdef void close_timestamps(TimestampQueries* queries) noexcept nogil:
    destroy_child(queries.device, QUERY_POOL, &queries.handle)


cdef void reset_timestamps(const CommandBuffer* commands,
                           const TimestampQueries* queries) noexcept nogil:
    commands.device.vk.vkCmdResetQueryPool(commands.handle, queries.handle, 0, queries.size)


cdef void write_timestamp(const CommandBuffer* commands, const TimestampQueries* queries,
                          uint32_t index) noexcept nogil:
    commands.device.vk.vkCmdWriteTimestamp(
        commands.handle, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, queries.handle, index)


cdef int read_timestamps(const TimestampQueries* queries, uint64_t* ticks, uint32_t first,
                         uint32_t number, bint* written, Error* error) noexcept nogil:
    cdef uint64_t mask = <uint64_t>-1
    cdef uint32_t i
    cdef int result
    written[0] = False
    if need(queries.handle != VK_NULL_HANDLE, error):
        return error.status
    result = queries.device.vk.vkGetQueryPoolResults(
        queries.device.handle, queries.handle, first, number, number * sizeof(uint64_t), ticks,
        sizeof(uint64_t), VK_QUERY_RESULT_64_BIT)
    if check_result(result, b"vkGetQueryPoolResults", error):
        return error.status
    if queries.device.timestamp_bits < 64:
        mask = (<uint64_t>1 << queries.device.timestamp_bits) - 1
    for i in range(number):
        ticks[i] &= mask
    written[0] = result == VK_SUCCESS
    return VKRT_OK
