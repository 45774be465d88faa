from libc.stdint cimport INT32_MAX, INT32_MIN, int16_t, int32_t
from libc.string cimport memcpy

from vkrt.core.error cimport VKRT_ERROR_INPUT, VKRT_OK, fail
from vkrt.core.records cimport DTYPE_FLOAT64, DTYPE_INT16, DTYPE_INT64


cdef bint is_converted(int64_t dtype) noexcept nogil:
    return dtype in (DTYPE_INT64, DTYPE_INT16, DTYPE_FLOAT64)


cdef int narrow_integers(const char* source, int32_t* target, size_t count, int64_t number,
                         Error* error) noexcept nogil:
    cdef int64_t low = 0, high = 0, value
    cdef size_t i
    for i in range(count):
        memcpy(&value, source + 8 * i, 8)
        low, high = min(low, value), max(high, value)
        target[i] = <int32_t>value
    if low < INT32_MIN or high > INT32_MAX:
        return fail(error, VKRT_ERROR_INPUT, b"input %lld: it holds %lld; integers have 32 bits on "
                    b"the device, -2147483648 to 2147483647", <long long>number,
                    <long long>(high if high > INT32_MAX else low))
    return VKRT_OK


cdef int elements_to_device(int64_t dtype, const void* source, void* target, size_t count,
                            int64_t number, Error* error) noexcept nogil:
    cdef double value
    cdef int16_t small
    cdef size_t i
    if dtype == DTYPE_INT64:
        return narrow_integers(<const char*>source, <int32_t*>target, count, number, error)
    for i in range(count):
        if dtype == DTYPE_INT16:
            memcpy(&small, <const char*>source + 2 * i, 2)
            (<int32_t*>target)[i] = small
        else:
            memcpy(&value, <const char*>source + 8 * i, 8)
            (<float*>target)[i] = <float>value
    return VKRT_OK


cdef void elements_to_host(int64_t dtype, const void* source, void* target,
                           size_t count) noexcept nogil:
    cdef int64_t integer
    cdef int16_t small
    cdef double value
    cdef size_t i
    for i in range(count):
        if dtype == DTYPE_INT64:
            integer = (<const int32_t*>source)[i]
            memcpy(<char*>target + 8 * i, &integer, 8)
        elif dtype == DTYPE_INT16:
            small = <int16_t>(<const int32_t*>source)[i]
            memcpy(<char*>target + 2 * i, &small, 2)
        else:
            value = (<const float*>source)[i]
            memcpy(<char*>target + 8 * i, &value, 8)
