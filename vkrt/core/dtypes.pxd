# cython: language_level=3

from libc.stdint cimport int64_t


cdef extern int64_t itemsize_of "vkrt_itemsize"(int64_t dtype) noexcept nogil
cdef extern bint is_device_dtype "vkrt_is_device_dtype"(int64_t dtype) noexcept nogil
cdef extern int64_t device_dtype "vkrt_device_dtype"(int64_t dtype) noexcept nogil
