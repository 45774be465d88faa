# cython: language_level=3

from vkrt.core.error cimport Error
from vkrt.core.records cimport CompiledMethodRow, Records


cdef extern int check_border "vkrt_check_border"(
    const Records* records, const CompiledMethodRow* method, Error* error) noexcept nogil
