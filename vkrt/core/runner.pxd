# cython: language_level=3
"""One method of a compiled program on a device: for the tests of the core, which see more of it
than hosts do (`vkrt.core.loaded_program`)."""

from libc.stdint cimport int64_t, uint64_t

from vkrt.core.error cimport Error
from vkrt.core.fence cimport Poll
from vkrt.core.file cimport File
from vkrt.core.host_kernel cimport Host
from vkrt.core.method cimport Method, Session
from vkrt.core.program cimport ProgramFile
from vkrt.core.program_device cimport ProgramDevice
from vkrt.core.records cimport CompiledMethodRow
from vkrt.core.workarounds cimport Workarounds


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


# Loads a method of a compiled program, of the first target that fits.
#   device: number of the device, in the order of the driver's
#   method: its name
cdef extern int open_runner "vkrt_open_runner"(
    const char* path, int device, const char* method, Runner** runner,
    Error* error) noexcept nogil
# The same for a host that runs kernels; `run_kernel` of NULL: it has none, and a program with such
# kernels is refused by their name.
cdef extern int open_hosted_runner "vkrt_open_hosted_runner"(
    const char* path, int device, const char* method, const Host* host, Runner** runner,
    Error* error) noexcept nogil
# What is known of a device's driver, see `vkrt.core.workarounds`
cdef extern int known_of_device "vkrt_known_of_device"(
    int device, Workarounds* known, Error* error) noexcept nogil
cdef extern void close_runner "vkrt_close_runner"(Runner* runner) noexcept nogil
# Bytes of device memory: the peak that was planned, and the one that there was
cdef extern int64_t planned_peak "vkrt_planned_peak"(const Runner* runner) noexcept nogil
cdef extern uint64_t measured_peak "vkrt_measured_peak"(Runner* runner) noexcept nogil
# These are `use_shape`, `write_input`, `read_output` and `run_method` of its method.
cdef extern int set_shape "vkrt_set_shape"(
    Runner* runner, int64_t number, Error* error) noexcept nogil
cdef extern int set_input "vkrt_set_input"(
    Runner* runner, int64_t number, const void* data, size_t nbytes, Error* error) noexcept nogil
cdef extern int get_output "vkrt_get_output"(
    Runner* runner, int64_t number, void* data, size_t nbytes, Error* error) noexcept nogil
cdef extern int run_once "vkrt_run_once"(
    Runner* runner, Poll poll, void* data, Error* error) noexcept nogil
# For what the functions of its method can do besides
cdef extern Method* method_of "vkrt_method_of"(Runner* runner) noexcept nogil
