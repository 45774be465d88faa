# cython: language_level=3
"""Bytes of device memory that a program was planned to take."""

from libc.stdint cimport uint64_t

from vkrt.core.records cimport ExecutableRow, Records


# Bytes of device memory, as `vkrt_memory` has them; of several methods they add up.
cdef struct ProgramFigures:
    uint64_t planned_peak, weights, mapped, streamed, pool, uploads, state, staging, activations
    uint64_t host


# What is allocated while nothing is loaded
cdef extern uint64_t kept_bytes "vkrt_kept_bytes"(const ProgramFigures* figures) noexcept nogil
# Takes a method that is going to be loaded.
cdef extern void add_figures "vkrt_add_figures"(
    ProgramFigures* figures, const Records* records,
    const ExecutableRow* executable) noexcept nogil
# Takes back one whose load failed; its peak may have been reached.
cdef extern void remove_figures "vkrt_remove_figures"(
    ProgramFigures* figures, const Records* records,
    const ExecutableRow* executable) noexcept nogil
