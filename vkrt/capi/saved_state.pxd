"""Saved states of compiled programs as bytes: the same as those of `vkrt.capi.saving`, which says
what they are."""

from vkrt.capi.table cimport vkrt_failure
from vkrt.core.loaded_program cimport MethodState

cdef extern nogil:
    # The caller holds the lock of the state's method.
    #   needed: how many bytes they are; with no buffer nothing else happens
    int save_state "vkrt_save_state"(vkrt_failure* failure, MethodState* state, void* buffer,
                                     size_t nbytes, size_t* needed)
    int load_state "vkrt_load_state"(vkrt_failure* failure, MethodState* state, const void* data,
                                     size_t nbytes)
