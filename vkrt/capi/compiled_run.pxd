# cython: language_level=3
"""A run of a compiled program's method on tensors of the caller's."""

from vkrt.capi.table cimport vkrt_failure, vkrt_tensor
from vkrt.core.loaded_program cimport ProgramMethod


# See `vkrt_run`. The method is loaded; `state` is a handle, or 0 for the method's first.
cdef extern int run_tensors "vkrt_run_tensors"(
    vkrt_failure* failure, ProgramMethod* method, size_t state, const vkrt_tensor* inputs,
    size_t input_count, vkrt_tensor* outputs, size_t output_count) noexcept nogil
