# cython: language_level=3
"""Elements of inputs and outputs between the host, where some have 64 bits, and the device, where
the same have 32."""

from libc.stdint cimport int64_t

from vkrt.core.error cimport Error


# Whether elements of a host's dtype have fewer bits on the device.
cdef extern bint is_narrowed "vkrt_is_narrowed"(int64_t dtype) noexcept nogil
# Converts elements to the dtype that the device has; `source` need not be aligned. An integer that
# does not fit is refused.
#   dtype: the host's, one that is narrowed
#   number: of the input, for the message
cdef extern int narrow_elements "vkrt_narrow_elements"(
    int64_t dtype, const void* source, void* target, size_t count, int64_t number,
    Error* error) noexcept nogil
# Converts elements back; `target` need not be aligned.
cdef extern void widen_elements "vkrt_widen_elements"(
    int64_t dtype, const void* source, void* target, size_t count) noexcept nogil
