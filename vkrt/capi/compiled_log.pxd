"""What is said about compiled programs while they are loaded, a line at a time."""

from vkrt.capi.table cimport vkrt_log
from vkrt.core.loaded_program cimport LoadedProgram, ProgramMethod

cdef extern nogil:
    void send_log "vkrt_send_log"(int level, vkrt_log callback, void* data)
    # Level 1: the memory plan of a method that is loaded
    void say_method "vkrt_say_method"(const ProgramMethod* method)
    # Level 2: how many bytes there are on the device when a part of a load is done
    void say_part "vkrt_say_part"(LoadedProgram* program, const char* part)
