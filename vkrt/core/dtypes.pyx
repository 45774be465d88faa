"""Dtypes of elements, as `vkrt.work.tensor` has them; the numbers are those of files."""

from libc.stdint cimport int64_t

from vkrt.core.records cimport (
    DTYPE_BFLOAT16, DTYPE_BITS16, DTYPE_BOOL, DTYPE_COMPLEX32, DTYPE_COMPLEX64, DTYPE_COMPLEX128,
    DTYPE_FLOAT16, DTYPE_FLOAT32, DTYPE_FLOAT64, DTYPE_INT8, DTYPE_INT16, DTYPE_INT32, DTYPE_INT64,
    DTYPE_QINT32, DTYPE_UINT8, DTYPE_UINT16, DTYPE_UINT32, DTYPE_UINT64,
)


cdef int64_t itemsize_of(int64_t dtype) noexcept nogil:
    """Bytes of an element."""
    if dtype in (DTYPE_INT16, DTYPE_UINT16, DTYPE_FLOAT16, DTYPE_BFLOAT16, DTYPE_BITS16):
        return 2
    if dtype in (DTYPE_INT32, DTYPE_UINT32, DTYPE_FLOAT32, DTYPE_COMPLEX32, DTYPE_QINT32):
        return 4
    if dtype in (DTYPE_INT64, DTYPE_UINT64, DTYPE_FLOAT64, DTYPE_COMPLEX64):
        return 8
    return 16 if dtype == DTYPE_COMPLEX128 else 1


cdef bint is_device_dtype(int64_t dtype) noexcept nogil:
    """Whether kernels read elements of it."""
    return dtype in (DTYPE_FLOAT32, DTYPE_FLOAT16, DTYPE_BFLOAT16, DTYPE_INT32, DTYPE_INT8,
                     DTYPE_UINT8, DTYPE_BOOL)


cdef int64_t device_dtype(int64_t dtype) noexcept nogil:
    """The dtype that a tensor of a program has on the device."""
    if dtype == DTYPE_INT64 or dtype == DTYPE_INT16:
        return DTYPE_INT32
    return DTYPE_FLOAT32 if dtype == DTYPE_FLOAT64 or dtype == DTYPE_BFLOAT16 else dtype
