# cython: language_level=3
"""Prepack: constants of the file, slice by slice, through one staging buffer into their weights.

The order is the file's. Before each batch the memory blocks of the weights it reaches are
allocated.
"""

from libc.stdint cimport int64_t

from vkrt.core.allocator cimport Allocator
from vkrt.core.error cimport Error
from vkrt.core.handles cimport Handles
from vkrt.core.kernels cimport Kernels
from vkrt.core.reader cimport Reader
from vkrt.core.records cimport PrepackPlanRow

# Allocates a block of weights by its number, if it is not there yet, and binds its storages.
ctypedef int (*AllocateBlock)(void* data, int64_t number, Error* error) noexcept nogil


# Packs every weight of a plan. Whatever happens, staging is released.
cdef extern int run_prepack "vkrt_run_prepack"(
    const PrepackPlanRow* plan, Handles* handles, Allocator* allocator, Kernels* kernels,
    Reader* reader, AllocateBlock allocate, void* data, Error* error) noexcept nogil
