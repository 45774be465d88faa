"""Bytes of device memory that a program was planned to take."""

from libc.stdint cimport uint64_t

from vkrt.core.records cimport ExecutableRow, Records

# Bytes of device memory, as `vkrt_memory` has them; of several methods they add up.
cdef struct ProgramFigures:
    uint64_t planned_peak, weights, mapped, streamed, pool, uploads, state, staging, activations
    uint64_t host

cdef extern nogil:
    # What is allocated while nothing is loaded
    uint64_t kept_bytes "vkrt_kept_bytes"(const ProgramFigures* figures)
    # Takes a method that is going to be loaded.
    void add_figures "vkrt_add_figures"(ProgramFigures* figures, const Records* records,
                                        const ExecutableRow* executable)
    # Takes back one whose load failed; its peak may have been reached.
    void remove_figures "vkrt_remove_figures"(ProgramFigures* figures, const Records* records,
                                              const ExecutableRow* executable)
