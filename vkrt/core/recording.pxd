"""Recording: the commands of a plan become those of Vulkan."""

from libc.stdint cimport int64_t, uint32_t

from vkrt.core.command cimport CommandBuffer
from vkrt.core.descriptors cimport DescriptorPool
from vkrt.core.error cimport Error
from vkrt.core.handles cimport Handles
from vkrt.core.kernels cimport Kernel
from vkrt.core.records cimport Records, Rows, SubmissionRecordRow
from vkrt.core.timestamps cimport TimestampQueries

# Takes the times before (2 i) and after (2 i + 1) every step i, which is no barrier.
cdef struct StepClock:
    const TimestampQueries* queries
    uint32_t step  # the next one

cdef extern nogil:
    # The descriptor sets of the dispatches among commands, in their order. Where there are none,
    # the pool is all zeros.
    #   records: the tables that the commands are in
    #   kernels: by the number that a dispatch has of them
    int make_sets "vkrt_make_sets"(Handles* handles, const Records* records, const Rows* commands,
                                   const Kernel* kernels, DescriptorPool* pool, Error* error)
    # The same, of all dispatches of submissions
    int make_submission_sets "vkrt_make_submission_sets"(
        Handles* handles, const Records* records, const SubmissionRecordRow* submissions,
        int64_t number, const Kernel* kernels, DescriptorPool* pool, Error* error)
    # Records commands.
    #   first: which of the sets belongs to the first dispatch; becomes that behind the last one
    #   clock: NULL for none
    int record_commands "vkrt_record_commands"(const CommandBuffer* buffer, Handles* handles,
                                               const Records* records, const Rows* commands,
                                               const Kernel* kernels, const DescriptorPool* pool,
                                               uint32_t* first, StepClock* clock, Error* error)
