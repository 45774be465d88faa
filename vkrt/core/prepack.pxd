"""Prepack: constants of the file, slice by slice, through one staging buffer into their weights.

The order is the file's. Before each batch the memory blocks of the weights it reaches are
allocated.
"""

from libc.stdint cimport int64_t

from vkrt.core.allocator cimport Allocator
from vkrt.core.error cimport Error
from vkrt.core.handles cimport Handles
from vkrt.core.kernels cimport Kernel
from vkrt.core.loading cimport Loading
from vkrt.core.records cimport PrepackPlanRow, Records

# Allocates a block of weights by its number, if it is not there yet, and binds its storages.
ctypedef int (*AllocateBlock)(void* data, int64_t number, Error* error) noexcept nogil

cdef extern nogil:
    # Packs every weight of a plan. Whatever happens, staging is released.
    #   records: the tables that the plan is in
    #   kernels: by their numbers in the plan
    int run_prepack "vkrt_run_prepack"(
        const Records* records, const PrepackPlanRow* plan, Handles* handles, Allocator* allocator,
        const Kernel* kernels, Loading* loading, AllocateBlock allocate, void* data, Error* error)
