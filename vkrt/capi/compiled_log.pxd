# cython: language_level=3
"""What is said about compiled programs while they are loaded, a line at a time."""

from vkrt.capi.table cimport vkrt_log
from vkrt.core.loaded_program cimport ProgramMethod


cdef extern void send_log "vkrt_send_log"(int level, vkrt_log callback, void* data) noexcept nogil
# Whether anybody wants lines of a level.
cdef extern bint hears "vkrt_hears"(int level) noexcept nogil
cdef extern void say "vkrt_say"(int level, const char* line) noexcept nogil
# Level 1: the memory plan of a method that is loaded
cdef extern void say_method "vkrt_say_method"(const ProgramMethod* method) noexcept nogil
