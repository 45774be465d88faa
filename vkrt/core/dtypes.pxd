from libc.stdint cimport int64_t

cdef extern nogil:
    int64_t itemsize_of "vkrt_itemsize"(int64_t dtype)
    bint is_device_dtype "vkrt_is_device_dtype"(int64_t dtype)
    int64_t device_dtype "vkrt_device_dtype"(int64_t dtype)
