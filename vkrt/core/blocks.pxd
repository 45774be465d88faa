"""The memory of planned blocks, allocated one by one or all at once."""

from libc.stdint cimport int64_t

from vkrt.core.allocator cimport Allocator
from vkrt.core.block cimport Block
from vkrt.core.error cimport Error
from vkrt.core.handles cimport Handles
from vkrt.core.memory_types cimport Purpose
from vkrt.core.records cimport Records, Rows

cdef struct Blocks:
    Allocator* allocator
    # The account of the host's memory in which activations wait
    Allocator* spilled
    const Records* records
    const Rows* planned
    # Types of memory that each row of the table of blocks may lie in, see `vkrt.core.fit`; NULL:
    # those that the rows say
    const int64_t* type_bits
    Block* items

cdef extern nogil:
    # Nothing is allocated yet. What failed needs no `free_blocks`.
    int plan_blocks "vkrt_plan_blocks"(Allocator* allocator, Allocator* spilled,
                                       const Records* records, const Rows* planned,
                                       const int64_t* type_bits, Blocks* blocks, Error* error)
    # Allocates a block by its number, and binds what lies in it, unless it is there.
    int allocate_planned "vkrt_allocate_planned"(Blocks* blocks, Handles* handles, int64_t number,
                                                 Error* error)
    # Allocates those that are not there, and binds nothing.
    int allocate_all "vkrt_allocate_all"(Blocks* blocks, Error* error)
    # The blocks of an arena that planned ones are, or parts of: of the same kind and types of
    # memory, and no smaller. The caller frees `found`, also where it failed.
    int find_blocks "vkrt_find_blocks"(Blocks* arena, const Rows* planned, Block*** found,
                                       Error* error)
    # The device must be done with them. May be called again.
    void free_blocks "vkrt_free_blocks"(Blocks* blocks)
