"""Further values of what a method keeps from run to run, and the bytes of all of them. The caller
holds the method's lock."""

from libc.stdint cimport int64_t

from vkrt.core.error cimport Error
from vkrt.core.execution cimport Execution
from vkrt.core.external cimport IOBinding
from vkrt.core.loaded_program cimport MethodState, ProgramMethod
from vkrt.core.records cimport StateTensorRow

cdef extern nogil:
    # One more state, with the initial values
    int make_state "vkrt_make_state"(ProgramMethod* method, MethodState** state, Error* error)
    # One that `make_state` made
    void close_state "vkrt_close_state"(MethodState* state)
    # Makes the method ready to run over a state, at a shape by its number (`use_shape`).
    int use_state "vkrt_use_state"(ProgramMethod* method, MethodState* state, int64_t shape,
                                   Error* error)
    # Refuses a state that a run which failed has left half changed.
    int check_state "vkrt_check_state"(const MethodState* state, Error* error)
    # The commands of a shape over a state. Balance with `close_execution`; nothing is left of it
    # where it failed.
    #   binding: the host's buffers that stand for inputs and outputs; NULL: none
    int make_execution "vkrt_make_execution"(MethodState* state, int64_t shape,
                                             const IOBinding* binding, Execution* execution,
                                             Error* error)
    # Gives it the initial values.
    int reset_state "vkrt_reset_state"(MethodState* state, Error* error)
    # The tensors that a state consists of; their number
    int64_t state_tensors "vkrt_state_tensors"(const ProgramMethod* method,
                                               const StateTensorRow** tensors)
    # Copies the values of all of them, one behind the other.
    int save_values "vkrt_save_values"(MethodState* state, char* values, Error* error)
    # Gives all of them such values.
    int load_values "vkrt_load_values"(MethodState* state, const char* values, Error* error)
