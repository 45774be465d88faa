# cython: language_level=3
"""One method of a compiled program on a device: for the tests of the core, which see more of it
than hosts do (`vkrt.core.loaded_program`)."""

from libc.stdint cimport int64_t

from vkrt.core.error cimport Error
from vkrt.core.file cimport File
from vkrt.core.host_kernel cimport Host
from vkrt.core.method cimport Method, Session
from vkrt.core.program cimport ProgramFile
from vkrt.core.program_device cimport ProgramDevice
from vkrt.core.records cimport CompiledMethodRow


cdef struct Runner:
    ProgramFile program
    File file
    ProgramDevice* device
    int64_t* type_bits
    Session session
    Method method
    const CompiledMethodRow* row
    # Kernels of the host's, if it has any
    Host host


# Loads a method of a compiled program on the first device, of the first target that fits.
#   host: runs kernels of the host's; NULL: there are none, and a program with such kernels is
#     refused by their name
cdef extern int open_runner "vkrt_open_runner"(
    const char* path, const char* method, const Host* host, Runner** runner,
    Error* error) noexcept nogil
cdef extern void close_runner "vkrt_close_runner"(Runner* runner) noexcept nogil
# Its method, for what functions of that can do
cdef extern Method* method_of "vkrt_method_of"(Runner* runner) noexcept nogil
# `run_method` of it
cdef extern int run_once "vkrt_run_once"(Runner* runner, Error* error) noexcept nogil
