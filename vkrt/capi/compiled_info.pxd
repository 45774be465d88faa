"""What a method of a compiled program takes and returns, as callers see it."""

from libc.stdint cimport int32_t, int64_t

from vkrt.capi.table cimport vkrt_failure, vkrt_tensor_info
from vkrt.core.loaded_program cimport ProgramMethod
from vkrt.core.records cimport Member, Records, Rows

# An input or output
cdef struct Value:
    const Records* records
    const Member* member
    # Of the host (DTYPE_..), -1 for what has none: None, texts
    int64_t dtype
    # VKRT_..; 0: vkrt.h has none for it
    int32_t number
    # Upper bounds, and the sizes at the largest shape; NULL for what is no tensor
    const Rows* bounds
    const Rows* dynamic_dims
    int64_t rank

cdef extern nogil:
    # The inputs of a method, or its outputs; a method that only returns numbers has no inputs
    int64_t value_count "vkrt_value_count"(const ProgramMethod* method, bint is_output)
    Value value_at "vkrt_value_at"(const ProgramMethod* method, bint is_output, int64_t number)
    Value value_of "vkrt_value_of"(const Records* records, const Member* member)
    bint is_dynamic "vkrt_is_dynamic"(const Value* value, int64_t dim)
    int64_t bound_of "vkrt_bound_of"(const Value* value, int64_t dim)
    int fill_info "vkrt_fill_info"(vkrt_failure* failure, const ProgramMethod* method,
                                   bint is_output, size_t number, vkrt_tensor_info* info)

    # Texts for messages, cut to what there is room for; each returns `text`.
    const char* name_value "vkrt_name_value"(const ProgramMethod* method, bint is_output,
                                             int64_t number, char* text, size_t size)
    const char* describe_value "vkrt_describe_value"(const Value* value, char* text, size_t size)
    const char* describe_values "vkrt_describe_values"(const ProgramMethod* method, bint is_output,
                                                       char* text, size_t size)
    const char* dtype_name "vkrt_dtype_name"(int64_t dtype)
    # The dtype (DTYPE_..) of a number of vkrt.h; -1 for none
    int64_t dtype_of "vkrt_dtype_of"(int32_t number)
    # Copies a text with its zero, cut between characters where it is too long.
    void put_text "vkrt_put_text"(char* place, size_t size, const char* text, size_t nbytes)
