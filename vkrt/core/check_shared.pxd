from libc.stdint cimport int64_t

from vkrt.core.check cimport Check
from vkrt.core.error cimport Error
from vkrt.core.records cimport CompiledMethodRow, Records, Rows

cdef extern nogil:
    # Checks shared weights: a method of which every storage is a weight that has memory.
    int check_shared "vkrt_check_shared"(const Records* records, const CompiledMethodRow* method,
                                         int64_t sources, int64_t source_bytes, Error* error)
    # The shared weights that a method reads, which have memory from here on. Nothing of the method
    # itself brings them there: that is checked before.
    #   shared: those of its target, which are sound
    int check_uses "vkrt_check_uses"(Check* c, const CompiledMethodRow* method, const Rows* shared)
