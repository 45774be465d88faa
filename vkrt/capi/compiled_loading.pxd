# cython: language_level=3

from libc.stdint cimport uint64_t

from vkrt.capi.table cimport vkrt_failure, vkrt_options, vkrt_program
from vkrt.core.loaded_program cimport ProgramMethod


# See `vkrt_load`, `vkrt_load_memory`, `vkrt_load_fd` and `vkrt_close`.
cdef extern int load_path "vkrt_compiled_load"(
    vkrt_failure* failure, const char* path, const vkrt_options* options,
    vkrt_program* program) noexcept nogil
cdef extern int load_memory "vkrt_compiled_load_memory"(
    vkrt_failure* failure, const void* data, size_t nbytes, const vkrt_options* options,
    vkrt_program* program) noexcept nogil
cdef extern int load_fd "vkrt_compiled_load_fd"(
    vkrt_failure* failure, int fd, uint64_t offset, uint64_t length, const vkrt_options* options,
    vkrt_program* program) noexcept nogil
cdef extern int close_handle "vkrt_compiled_close"(
    vkrt_failure* failure, vkrt_program program) noexcept nogil

# The name that a caller means: a null pointer is "forward".
cdef extern const char* method_name "vkrt_compiled_method_name"(const char* name) noexcept nogil
# A method of a program, which the caller releases where this succeeds
cdef extern int hold_method "vkrt_hold_method"(
    vkrt_failure* failure, vkrt_program program, const char* name,
    ProgramMethod** method) noexcept nogil
# The same of a method that is loaded now, if it is not yet
cdef extern int hold_loaded "vkrt_hold_loaded_method"(
    vkrt_failure* failure, vkrt_program program, const char* name,
    ProgramMethod** method) noexcept nogil
