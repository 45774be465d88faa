# cython: language_level=3

from vkrt.core.check cimport Check
from vkrt.core.records cimport BlockRow, ExecutableRow, Records, WeightPlanRow


cdef extern int check_weights "vkrt_check_weights"(
    Check* c, const ExecutableRow* executable) noexcept nogil
# Whether a block has a place for a weight that the host writes, and so is allocated first
cdef extern bint has_written "vkrt_has_written"(
    const Records* records, const WeightPlanRow* weights, const BlockRow* block) noexcept nogil
