from libc.stdint cimport int64_t

from vkrt.core.error cimport Error
from vkrt.core.handles cimport Handles


cdef class HostCalls:
    # By the number of their submission: (name, arguments, arrays of the results)
    cdef dict calls
    # What runs them
    cdef object run_kernel


# Those of an `ExecutionPlan`
#   handles: of its storages, bound for as long as there are calls
cdef HostCalls calls_of(plan, const Handles* handles)
# A `vkrt.core.host_kernel.RunHostKernel`, of which the data is a `HostCalls`; what it raises stays
# the thread's exception.
cdef int run_host_call(void* data, int64_t submission, bint skipped, Error* error) noexcept with gil
