# cython: language_level=3
"""The inputs of a call: dtypes, sizes and numbers, compared with what a method takes, and the shape
that they are at."""

from libc.stdint cimport int64_t

from vkrt.capi.table cimport vkrt_failure, vkrt_tensor
from vkrt.core.loaded_program cimport ProgramMethod
from vkrt.core.records cimport Records


# A call in progress
cdef struct Call:
    vkrt_failure* failure
    ProgramMethod* method
    const Records* records
    const vkrt_tensor* inputs
    size_t input_count
    vkrt_tensor* outputs
    size_t output_count
    int64_t shape


# Compares all inputs of a call with what the method takes.
cdef extern int check_inputs "vkrt_check_inputs"(const Call* call) noexcept nogil
# Finds the shape of checked inputs, which `call.shape` becomes.
cdef extern int find_shape "vkrt_find_shape"(Call* call) noexcept nogil
