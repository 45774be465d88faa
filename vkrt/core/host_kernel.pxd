"""What a run asks of its host: whether to go on, and kernels that run on the host.

A branch is no kernel, and nor is a read of rows: the core reads conditions and rows itself.
"""

from libc.stdint cimport int64_t

from vkrt.core.error cimport Error
from vkrt.core.handles cimport Handles
from vkrt.core.poll cimport Poll
from vkrt.core.reader cimport Reader
from vkrt.core.records cimport ExecutionPlanRow, HostKernelRow, Records

# Runs the kernel behind a submission, whose number is that in the plan; its arrays lie at
# `host_address` of their ranges, and nobody else uses them meanwhile. Where it is `skipped` it
# stands in a branch that is not taken: it is told, and not run. Any other status than VKRT_OK ends
# the run, with the error filled: VKRT_ERROR_CANCELLED leaves what the device is at work on, as a
# `Poll` that says no does.
ctypedef int (*RunHostKernel)(void* data, int64_t submission, bint skipped,
                              Error* error) noexcept nogil

# Seconds on the clock of the system that only goes forward (CLOCK_MONOTONIC)
cdef struct StepTime:
    double start, seconds

# Notes when the kernels and branches of a run took how long, those that are skipped included.
cdef struct HostClock:
    StepTime* times
    int64_t count, room

# All zeros: a host that is asked nothing
cdef struct Host:
    Poll poll
    void* poll_data
    RunHostKernel run_kernel
    void* kernel_data
    HostClock* clock

cdef extern nogil:
    # Runs the kernel behind submission `number`, or reads rows, or the conditions of a branch.
    # `skipping` is whether the kernel stands in a branch that is not taken, and becomes the same
    # for what is behind.
    #   reader: see `vkrt.core.row_reads`; NULL where a plan reads no rows
    int run_host_kernel "vkrt_run_host_kernel"(const Host* host, Reader* reader,
                                               const Handles* handles, const HostKernelRow* kernel,
                                               int64_t number, bint* skipping, Error* error)
    # VKRT_ERROR_UNSUPPORTED, with the name, where a plan has a kernel of the host.
    int refuse_host_kernels "vkrt_refuse_host_kernels"(const Records* records,
                                                       const ExecutionPlanRow* plan, Error* error)
    double seconds_now "vkrt_seconds_now"()
