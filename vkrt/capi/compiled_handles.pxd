"""What the handles of compiled programs and of their states stand for: numbers that are never used
twice, so that a closed one is an error and not somebody else's program."""

from vkrt.capi.table cimport vkrt_failure
from vkrt.core.loaded_program cimport LoadedProgram, MethodState, ProgramMethod

cdef extern nogil:
    # Whether a number is that of a compiled program or of its state, open or closed
    bint is_compiled_handle "vkrt_is_compiled_handle"(size_t number)
    # A handle for a program; 0 where the host is out of memory.
    size_t add_program "vkrt_add_program"(LoadedProgram* program)
    # What an open handle stands for, which stays open until `release_program`.
    int hold_program "vkrt_hold_program"(vkrt_failure* failure, size_t number,
                                         LoadedProgram** program)
    void release_program "vkrt_release_program"(size_t number)
    # Closes a handle, and those of the program's states, and waits until nobody holds the program,
    # which is the caller's then.
    int remove_program "vkrt_remove_program"(vkrt_failure* failure, size_t number,
                                             LoadedProgram** program)
    # A handle for a state; 0 where the host is out of memory.
    size_t add_state "vkrt_add_state"(size_t program, MethodState* state)
    # The program and the method of a state
    int find_state_owner "vkrt_find_state_owner"(vkrt_failure* failure, size_t number,
                                                 size_t* program, ProgramMethod** method)
    # A state of a method, whose lock the caller holds; of handle 0 the method's first.
    int find_state "vkrt_find_state"(vkrt_failure* failure, ProgramMethod* method, size_t number,
                                     MethodState** state)
    # The same, which closes the handle
    int remove_state "vkrt_remove_state"(vkrt_failure* failure, ProgramMethod* method,
                                         size_t number, MethodState** state)
