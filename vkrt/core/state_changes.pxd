"""When a run changes what a method keeps from run to run, and what one that failed leaves of it."""

from vkrt.core.error cimport Error
from vkrt.core.execution cimport Execution
from vkrt.core.records cimport ExecutionPlanRow, Records

cdef extern nogil:
    # Whether a run changes a state before everything else is done
    bint changes_states_early "vkrt_changes_states_early"(const Records* records,
                                                          const ExecutionPlanRow* plan)
    # Whether a run that has ended with an error may have left the states half changed. One that was
    # cancelled has not, where the device finishes it.
    bint leaves_states "vkrt_leaves_states"(const Execution* execution, const Error* error)
