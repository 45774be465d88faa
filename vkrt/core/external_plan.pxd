"""Which external buffers kernels use in place, and which the device copies.

A buffer takes the place of a whole storage, and so of every operand in it. That goes where only
kernels touch the storage, the buffer begins and ends as the storage does, and no step writes over
an input, where its tensor is or by an output in the same bytes of the buffer.
"""

from libc.stdint cimport int64_t, uint64_t

from vkrt.core.error cimport Error
from vkrt.core.external cimport ExternalBuffer, ExternalCopy, ExternalPlace, IOBinding
from vkrt.core.records cimport ExecutionPlanRow, Records

cdef struct ExternalPlan:
    IOBinding binding
    # What the binding refers to
    ExternalPlace* places
    ExternalCopy* copies_in
    ExternalCopy* copies_out

cdef extern nogil:
    # How a run uses buffers for some of its inputs and outputs: one for each number, without a
    # handle where the host has an array. An input that nothing reads is left out. One that shares
    # bytes with an output is copied before the run, whose kernels may write an output long before
    # they have read all of an input. What is compared are handles and ranges: two VkBuffers at the
    # same memory are not seen to be that. Balance with `free_external_plan`, also where it failed.
    #   alignment: bytes that the offset of a buffer used in place is a multiple of
    # VKRT_ERROR_INPUT: a buffer has fewer bytes than the tensor, or two outputs share bytes.
    int plan_external "vkrt_plan_external"(const Records* records, const ExecutionPlanRow* plan,
                                           uint64_t alignment, const ExternalBuffer* inputs,
                                           const ExternalBuffer* outputs, ExternalPlan* found,
                                           Error* error)
    void free_external_plan "vkrt_free_external_plan"(ExternalPlan* found)
    # Bytes that the device copies in every run
    uint64_t copied_bytes "vkrt_copied_bytes"(const IOBinding* binding)
