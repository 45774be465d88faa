"""A method of a loaded program, for the tests of the core, which see more of it than hosts do."""

from vkrt.core.error cimport Error
from vkrt.core.host_kernel cimport RunHostKernel
from vkrt.core.loaded_program cimport LoadedProgram, ProgramMethod
from vkrt.core.method cimport Method

cdef struct Runner:
    LoadedProgram* program
    ProgramMethod* method

cdef extern nogil:
    # Loads a method of a compiled program on the first device.
    #   run_kernel: see `LoadOptions`
    int open_runner "vkrt_open_runner"(const char* path, const char* method,
                                       RunHostKernel run_kernel, Runner** runner, Error* error)
    void close_runner "vkrt_close_runner"(Runner* runner)
    # Its method, for what functions of that can do
    Method* method_of "vkrt_method_of"(Runner* runner)
    # Runs it once over its own state.
    int run_once "vkrt_run_once"(Runner* runner, Error* error)
    # Gives its state the values that the file has.
    int reset_runner "vkrt_reset_runner"(Runner* runner, Error* error)
