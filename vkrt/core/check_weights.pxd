from vkrt.core.check cimport Check
from vkrt.core.records cimport BlockRow, ExecutableRow, Records, WeightPlanRow

cdef extern nogil:
    int check_weights "vkrt_check_weights"(Check* c, const ExecutableRow* executable)
    # Whether a block has a place for a weight that the host writes, and so is allocated first
    bint has_written "vkrt_has_written"(const Records* records, const WeightPlanRow* weights,
                                        const BlockRow* block)
