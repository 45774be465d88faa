"""Shared weights of a compiled program: on the device from the first method that reads them to the
last.

They are loaded as methods are, before those that read them. The program's lock guards them.
"""

from vkrt.core.error cimport Error
from vkrt.core.loaded_program cimport ProgramMethod
from vkrt.core.method cimport OnPart
from vkrt.core.records cimport CompiledTargetRow

cdef extern nogil:
    # Loads the shared weights that a method reads, unless they are loaded. Balance with
    # `drop_shared`, also where it failed.
    #   target: of the method's row
    #   on_part: is told of their parts, too
    int take_shared "vkrt_take_shared"(ProgramMethod* method, const CompiledTargetRow* target,
                                       OnPart on_part, void* data, Error* error)
    # The method is closed before. May be called again.
    void drop_shared "vkrt_drop_shared"(ProgramMethod* method)
