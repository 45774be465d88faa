"""Runs of compiled programs on buffers of the host's device: begun by one call, waited for by
another."""

from libc.stdint cimport uint64_t

from vkrt.capi.table cimport vkrt_failure, vkrt_submission
from vkrt.core.loaded_program cimport LoadedProgram, ProgramMethod

cdef extern nogil:
    # See `vkrt_submit`. The method is loaded; `state` is a handle, or 0 for the method's first.
    int submit_buffers "vkrt_submit_buffers"(vkrt_failure* failure, ProgramMethod* method,
                                             size_t state, const vkrt_submission* submission,
                                             uint64_t* copied)
    # See `vkrt_wait`.
    int wait_for_buffers "vkrt_wait_for_buffers"(vkrt_failure* failure, ProgramMethod* method)
    # See `vkrt_release_buffers`.
    int forget_buffers "vkrt_forget_buffers"(vkrt_failure* failure, LoadedProgram* program)
