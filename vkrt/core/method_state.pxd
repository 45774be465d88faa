# cython: language_level=3
"""Further values of what a method keeps from run to run, and the bytes of all of them. The caller
holds the method's lock."""

from libc.stdint cimport int64_t

from vkrt.core.error cimport Error
from vkrt.core.execution cimport Execution
from vkrt.core.external cimport IOBinding
from vkrt.core.loaded_program cimport MethodState, ProgramMethod
from vkrt.core.records cimport StateTensorRow


# One more state, with the initial values
cdef extern int make_state "vkrt_make_state"(
    ProgramMethod* method, MethodState** state, Error* error) noexcept nogil
# One that `make_state` made
cdef extern void close_state "vkrt_close_state"(MethodState* state) noexcept nogil
# Makes the method ready to run over a state, at a shape by its number (`use_shape`).
cdef extern int use_state "vkrt_use_state"(
    ProgramMethod* method, MethodState* state, int64_t shape, Error* error) noexcept nogil
# Refuses a state that a run which failed has left half changed.
cdef extern int check_state "vkrt_check_state"(
    const MethodState* state, Error* error) noexcept nogil
# The commands of a shape over a state. Balance with `close_execution`; nothing is left of it where
# it failed.
#   binding: the host's buffers that stand for inputs and outputs; NULL: none
cdef extern int make_execution "vkrt_make_execution"(
    MethodState* state, int64_t shape, const IOBinding* binding, Execution* execution,
    Error* error) noexcept nogil
# Gives it the initial values.
cdef extern int reset_state "vkrt_reset_state"(MethodState* state, Error* error) noexcept nogil
# The tensors that a state consists of; their number
cdef extern int64_t state_tensors "vkrt_state_tensors"(
    const ProgramMethod* method, const StateTensorRow** tensors) noexcept nogil
# Copies the values of all of them, one behind the other.
cdef extern int save_values "vkrt_save_values"(
    MethodState* state, char* values, Error* error) noexcept nogil
# Gives all of them such values.
cdef extern int load_values "vkrt_load_values"(
    MethodState* state, const char* values, Error* error) noexcept nogil
