# cython: language_level=3

from vkrt.core.check cimport Check
from vkrt.core.records cimport ExecutionPlanRow, HostKernelRow, Records, Rows


cdef extern bint is_branch "vkrt_is_branch"(
    const Records* records, const HostKernelRow* host) noexcept nogil
cdef extern int check_execution "vkrt_check_execution"(
    Check* c, const ExecutionPlanRow* execution) noexcept nogil
cdef extern int check_commands "vkrt_check_commands"(
    Check* c, const Rows* commands, const Rows* kernels) noexcept nogil
cdef extern int check_kernels "vkrt_check_kernels"(Check* c, const Rows* kernels) noexcept nogil
