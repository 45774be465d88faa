"""Which values of a SPIR-V module follow from its constants, and what `pruning` notes of it."""

from libc.stdint cimport int32_t, uint8_t, uint32_t

from vkrt.core.pipeline cimport Constant

cdef struct Code:
    const uint32_t* words
    int size
    uint32_t bound
    # By id: whether it is a known constant, and which; of labels whether anything reaches them,
    # where the terminator of their block is, and the label to which it goes if its condition is
    # known (or else 0); whether it is the result of an instruction that goes.
    uint8_t* is_known
    int32_t* values
    uint8_t* is_reached
    int32_t* ends
    uint32_t* taken
    uint8_t* is_gone
    # By id: the number of a specialization constant, one more than that
    uint32_t* spec_ids
    const Constant* constants
    size_t constant_count

cdef inline uint32_t valid(const Code* code, uint32_t number) noexcept nogil:
    """An id, or 0 for what is none."""
    return number if number < code.bound else 0

cdef inline int length(const uint32_t* at) noexcept nogil:
    return at[0] >> 16

cdef inline int opcode(const uint32_t* at) noexcept nogil:
    return at[0] & 0xFFFF

cdef extern nogil:
    # Finds the constants whose values are known, and the results of integer and boolean operations
    # on them; returns where the functions begin.
    int evaluate "vkrt_evaluate_constants"(Code* code)
