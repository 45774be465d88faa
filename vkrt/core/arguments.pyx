# cython: cdivision=True

from libc.stdint cimport int8_t, int32_t, uint8_t

from vkrt.core.dtypes cimport itemsize_of
from vkrt.core.error cimport VKRT_ERROR_INPUT, VKRT_OK, fail
from vkrt.core.records cimport DTYPE_INT8, DTYPE_INT32, IndexLimitRow, LimitRow, Text


cdef int64_t element_at(const void* data, size_t place, int64_t dtype) noexcept nogil:
    """An integer; the other dtypes of integers on devices have one byte without a sign."""
    if dtype == DTYPE_INT32:
        return (<const int32_t*>data)[place]
    if dtype == DTYPE_INT8:
        return (<const int8_t*>data)[place]
    return (<const uint8_t*>data)[place]


cdef int check_element(const Records* records, int64_t number, int64_t value, int64_t low,
                       int64_t high, const Text* where, Error* error) noexcept nogil:
    if low <= value <= high:
        return VKRT_OK
    return fail(error, VKRT_ERROR_INPUT, b"input %lld: expected numbers from %lld to %lld, got "
                b"%lld (%.*s)", <long long>number, <long long>low, <long long>high,
                <long long>value, <int>min(where.count, <int64_t>200), records.texts + where.first)


cdef int check_elements(const Records* records, const Rows* limits, const Rows* index_limits,
                        int64_t number, int64_t dtype, const void* data, size_t nbytes,
                        Error* error) noexcept nogil:
    cdef size_t count = nbytes // <size_t>itemsize_of(dtype)
    cdef const IndexLimitRow* indices
    cdef const LimitRow* limit
    cdef int64_t i
    cdef size_t k
    for i in range(index_limits.count):
        indices = records.index_limit + index_limits.first + i
        if indices.input != number:
            continue
        for k in range(count):
            if check_element(records, number, element_at(data, k, dtype), indices.low, indices.high,
                             &indices.where, error):
                return error.status
    for i in range(limits.count):
        limit = records.limit + limits.first + i
        if (limit.read.input == number and <size_t>limit.read.element < count
                and check_element(records, number,
                                  element_at(data, <size_t>limit.read.element, dtype), limit.low,
                                  limit.high, &limit.where, error)):
            return error.status
    return VKRT_OK
