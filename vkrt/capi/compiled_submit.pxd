# cython: language_level=3
"""Runs of compiled programs on buffers of the host's device: begun by one call, waited for by
another."""

from libc.stdint cimport uint64_t

from vkrt.capi.table cimport vkrt_failure, vkrt_submission
from vkrt.core.loaded_program cimport LoadedProgram, ProgramMethod


# See `vkrt_submit`. The method is loaded; `state` is a handle, or 0 for the method's first.
cdef extern int submit_buffers "vkrt_submit_buffers"(
    vkrt_failure* failure, ProgramMethod* method, size_t state, const vkrt_submission* submission,
    uint64_t* copied) noexcept nogil
# See `vkrt_wait`.
cdef extern int wait_for_buffers "vkrt_wait_for_buffers"(
    vkrt_failure* failure, ProgramMethod* method) noexcept nogil
# See `vkrt_release_buffers`.
cdef extern int forget_buffers "vkrt_forget_buffers"(
    vkrt_failure* failure, LoadedProgram* program) noexcept nogil
