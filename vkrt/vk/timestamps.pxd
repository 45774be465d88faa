# cython: language_level=3
"""Times on the device's clock."""

cimport cython
from libc.stdint cimport uint32_t, uint64_t

from vkrt.core.timestamps cimport TimestampQueries as CoreTimestampQueries
from vkrt.vk.device cimport Device


@cython.final
cdef class TimestampQueries:
    cdef Device device
    cdef CoreTimestampQueries core

    # Reads `number` values from the one of index `first` as ticks; 1 when all were there, else 0.
    cdef int read_ticks(self, uint64_t* ticks, uint32_t first, uint32_t number) except -1 nogil
