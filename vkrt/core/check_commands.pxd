from vkrt.core.check cimport Check
from vkrt.core.records cimport ExecutionPlanRow, HostKernelRow, Records, Rows

cdef extern nogil:
    bint is_branch "vkrt_is_branch"(const Records* records, const HostKernelRow* host)
    int check_execution "vkrt_check_execution"(Check* c, const ExecutionPlanRow* execution)
    int check_commands "vkrt_check_commands"(Check* c, const Rows* commands, const Rows* kernels)
    int check_kernels "vkrt_check_kernels"(Check* c, const Rows* kernels)
