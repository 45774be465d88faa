"""What a method keeps from run to run: its memory, and the values that it begins with."""

from vkrt.core.allocator cimport Allocator
from vkrt.core.blocks cimport Blocks
from vkrt.core.error cimport Error
from vkrt.core.handles cimport Handles
from vkrt.core.once cimport Once
from vkrt.core.loading cimport Loading
from vkrt.core.records cimport Records, StatePlanRow, StateTensorRow

from libc.stdint cimport int64_t

cdef struct States:
    const Records* records
    const StatePlanRow* plan
    Handles* handles
    Blocks blocks
    # A run that failed, or a change that did, has left them half changed.
    bint inconsistent

cdef extern nogil:
    # Makes the handles of a method's states in `handles`. No memory is allocated yet. Balance with
    # `close_states`, also where it failed.
    int open_states "vkrt_open_states"(Allocator* allocator, const Records* records,
                                       const StatePlanRow* plan, Handles* handles,
                                       const int64_t* type_bits, States* states, Error* error)
    # Allocates their memory, unless it is there.
    int allocate_states "vkrt_allocate_states"(States* states, Error* error)
    # Gives every state the value that the file has; the device is not at work.
    int reset_states "vkrt_reset_states"(States* states, Loading* loading, Error* error)
    # Gives one of them a value: zeros everywhere, padding included, and then the bytes.
    #   once: of the device
    int write_state "vkrt_write_state"(States* states, const StateTensorRow* state, Once* once,
                                       const char* data, size_t nbytes, Error* error)
    # The handles are closed before. The device must be done with them. May be called again.
    void close_states "vkrt_close_states"(States* states)
