# cython: language_level=3
"""What the handles of compiled programs and of their states stand for: numbers that are never used
twice, so that a closed one is an error and not somebody else's program."""

from vkrt.capi.table cimport vkrt_failure
from vkrt.core.loaded_program cimport LoadedProgram, MethodState, ProgramMethod


# Whether a number is that of a compiled program or of its state, open or closed
cdef extern bint is_compiled_handle "vkrt_is_compiled_handle"(size_t number) noexcept nogil
# A handle for a program; 0 where the host is out of memory.
cdef extern size_t add_program "vkrt_add_program"(LoadedProgram* program) noexcept nogil
# What an open handle stands for, which stays open until `release_program`.
cdef extern int hold_program "vkrt_hold_program"(
    vkrt_failure* failure, size_t number, LoadedProgram** program) noexcept nogil
cdef extern void release_program "vkrt_release_program"(size_t number) noexcept nogil
# Closes a handle, and those of the program's states, and waits until nobody holds the program,
# which is the caller's then.
cdef extern int remove_program "vkrt_remove_program"(
    vkrt_failure* failure, size_t number, LoadedProgram** program) noexcept nogil
# A handle for a state; 0 where the host is out of memory.
cdef extern size_t add_state "vkrt_add_state"(size_t program, MethodState* state) noexcept nogil
# The program and the method of a state
cdef extern int find_state_owner "vkrt_find_state_owner"(
    vkrt_failure* failure, size_t number, size_t* program, ProgramMethod** method) noexcept nogil
# A state of a method, whose lock the caller holds; of handle 0 the method's first.
cdef extern int find_state "vkrt_find_state"(
    vkrt_failure* failure, ProgramMethod* method, size_t number,
    MethodState** state) noexcept nogil
# The same, which closes the handle
cdef extern int remove_state "vkrt_remove_state"(
    vkrt_failure* failure, ProgramMethod* method, size_t number,
    MethodState** state) noexcept nogil
