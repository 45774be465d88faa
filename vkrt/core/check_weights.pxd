# cython: language_level=3

from vkrt.core.check cimport Check
from vkrt.core.records cimport ExecutableRow


cdef extern int check_weights "vkrt_check_weights"(
    Check* c, const ExecutableRow* executable) noexcept nogil
