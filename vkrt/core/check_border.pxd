from vkrt.core.error cimport Error
from vkrt.core.records cimport CompiledMethodRow, Records

cdef extern nogil:
    int check_border "vkrt_check_border"(const Records* records, const CompiledMethodRow* method,
                                         Error* error)
