"""Elements of inputs and outputs between the host and the device, where integers and floats of 64
bits, and integers of 16, have 32."""

from libc.stdint cimport int64_t

from vkrt.core.error cimport Error

cdef extern nogil:
    # Whether elements of a host's dtype have another width on the device.
    bint is_converted "vkrt_is_converted"(int64_t dtype)
    # Converts elements to the dtype that the device has; `source` need not be aligned. An integer
    # that does not fit is refused.
    #   dtype: the host's, one that is converted
    #   number: of the input, for the message
    int elements_to_device "vkrt_elements_to_device"(
        int64_t dtype, const void* source, void* target, size_t count, int64_t number, Error* error)
    # Converts elements back, integers modulo 2^16 where the host has 16 bits; `target` need not be
    # aligned.
    void elements_to_host "vkrt_elements_to_host"(int64_t dtype, const void* source, void* target,
                                                  size_t count)
