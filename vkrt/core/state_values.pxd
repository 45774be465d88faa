"""The bytes of everything that a method keeps from run to run: all values, one behind the other."""

from vkrt.core.error cimport Error
from vkrt.core.states cimport States

cdef extern nogil:
    # Copies them to memory that has room for all. The device is not at work.
    int save_states "vkrt_save_states"(States* states, char* values, Error* error)
    # Gives every state such a value.
    int load_states "vkrt_load_states"(States* states, const char* values, Error* error)
