"""What the inputs of a run may hold: indices and other numbers that decide where kernels go."""

from libc.stdint cimport int64_t

from vkrt.core.error cimport Error
from vkrt.core.records cimport Records, Rows

cdef extern nogil:
    # Compares elements of an input, as the device has them, with what the method allows.
    #   limits, index_limits: of the method at the shape at hand
    #   number: of the input
    #   dtype: of its elements (DTYPE_..)
    int check_elements "vkrt_check_elements"(
        const Records* records, const Rows* limits, const Rows* index_limits, int64_t number,
        int64_t dtype, const void* data, size_t nbytes, Error* error)
