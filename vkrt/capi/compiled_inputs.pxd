"""The inputs of a call: dtypes, sizes and numbers, compared with what a method takes, and the shape
that they are at."""

from libc.stdint cimport int64_t

from vkrt.capi.compiled_info cimport Value
from vkrt.capi.table cimport vkrt_failure, vkrt_tensor
from vkrt.core.loaded_program cimport ProgramMethod
from vkrt.core.records cimport Records

cdef enum:
    # Room for texts in messages: what an input is called, and its sizes
    LABEL_BYTES = 140
    SIZES_BYTES = 400

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

cdef extern nogil:
    # Compares all inputs of a call with what the method takes.
    int check_inputs "vkrt_check_inputs"(const Call* call)
    # Whether there are as many as the method takes
    int check_input_count "vkrt_check_input_count"(const Call* call)
    # Finds the shape of checked inputs, which `call.shape` becomes.
    int find_shape "vkrt_find_shape"(Call* call)

    # For messages: "input 0 'name'"
    const char* label_of "vkrt_label_of"(const Call* call, size_t number, char* text)
    # Sizes as "[1,2]"; how many bytes were wanted, or all that there are.
    size_t put_sizes "vkrt_put_sizes"(const int64_t* sizes, int64_t rank, char* text, size_t size)
    # Which dimension of a tensor of the right rank does not fit; nothing where all do.
    const char* wrong_dimension "vkrt_wrong_dimension"(const Value* value, const int64_t* sizes,
                                                       char* text, size_t size)
