from libc.stdint cimport uint64_t

from vkrt.capi.table cimport vkrt_failure, vkrt_options, vkrt_program
from vkrt.core.loaded_program cimport ProgramMethod

cdef extern nogil:
    # See `vkrt_load`, `vkrt_load_memory`, `vkrt_load_fd` and `vkrt_close`.
    int load_path "vkrt_compiled_load"(vkrt_failure* failure, const char* path,
                                       const vkrt_options* options, vkrt_program* program)
    int load_memory "vkrt_compiled_load_memory"(vkrt_failure* failure, const void* data,
                                                size_t nbytes, const vkrt_options* options,
                                                vkrt_program* program)
    int load_fd "vkrt_compiled_load_fd"(vkrt_failure* failure, int fd, uint64_t offset,
                                        uint64_t length, const vkrt_options* options,
                                        vkrt_program* program)
    int close_handle "vkrt_compiled_close"(vkrt_failure* failure, vkrt_program program)

    # The name that a caller means: a null pointer is "forward".
    const char* method_name "vkrt_compiled_method_name"(const char* name)
    # A method of a program, which the caller releases where this succeeds
    int hold_method "vkrt_hold_method"(vkrt_failure* failure, vkrt_program program,
                                       const char* name, ProgramMethod** method)
    # The same of a method that is loaded now, if it is not yet
    int hold_loaded "vkrt_hold_loaded_method"(vkrt_failure* failure, vkrt_program program,
                                              const char* name, ProgramMethod** method)
