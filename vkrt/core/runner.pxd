# cython: language_level=3
"""A method of a loaded program, for the tests of the core, which see more of it than hosts do."""

from vkrt.core.error cimport Error
from vkrt.core.host_kernel cimport RunHostKernel
from vkrt.core.loaded_program cimport LoadedProgram, ProgramMethod
from vkrt.core.method cimport Method


cdef struct Runner:
    LoadedProgram* program
    ProgramMethod* method


# Loads a method of a compiled program on the first device.
#   run_kernel: see `LoadOptions`
cdef extern int open_runner "vkrt_open_runner"(
    const char* path, const char* method, RunHostKernel run_kernel, Runner** runner,
    Error* error) noexcept nogil
cdef extern void close_runner "vkrt_close_runner"(Runner* runner) noexcept nogil
# Its method, for what functions of that can do
cdef extern Method* method_of "vkrt_method_of"(Runner* runner) noexcept nogil
# Runs it once over its own state.
cdef extern int run_once "vkrt_run_once"(Runner* runner, Error* error) noexcept nogil
# Gives its state the values that the file has.
cdef extern int reset_runner "vkrt_reset_runner"(Runner* runner, Error* error) noexcept nogil
