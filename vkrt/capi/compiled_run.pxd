"""A run of a compiled program's method on tensors of the caller's."""

from vkrt.capi.compiled_info cimport Value
from vkrt.capi.compiled_inputs cimport Call
from vkrt.capi.table cimport vkrt_failure, vkrt_tensor
from vkrt.core.loaded_program cimport ProgramMethod

cdef extern nogil:
    # See `vkrt_run`. The method is loaded; `state` is a handle, or 0 for the method's first.
    int run_tensors "vkrt_run_tensors"(vkrt_failure* failure, ProgramMethod* method, size_t state,
                                       const vkrt_tensor* inputs, size_t input_count,
                                       vkrt_tensor* outputs, size_t output_count)
    # Whether there are as many outputs as the method has
    int check_output_count "vkrt_check_output_count"(const Call* call)
    # An output at the shape of the call
    Value output_at "vkrt_output_value_at"(const Call* call, size_t number)
