"""The submissions of a plan, recorded: a command buffer for each, and the host's part behind it."""

from libc.stdint cimport int64_t

from vkrt.core.command cimport CommandBuffer, CommandPool
from vkrt.core.descriptors cimport DescriptorPool
from vkrt.core.error cimport Error
from vkrt.core.handles cimport Handles
from vkrt.core.kernels cimport Kernel
from vkrt.core.records cimport ExecutionPlanRow, HostKernelRow, Records
from vkrt.core.timestamps cimport TimestampQueries

cdef struct RecordedSubmission:
    CommandBuffer commands
    # NULL where nothing comes behind it
    const HostKernelRow* host

cdef struct Recording:
    int64_t count
    RecordedSubmission* items

cdef extern nogil:
    # Records all submissions of a plan. Balance with `close_recording`, also where it failed.
    #   handles: of the storages
    #   records: the tables that the plan is in
    #   kernels: by the number that the plan's dispatches have of them
    #   sets: of all of its dispatches, in order
    #   queries: two for every step, of the device or of the host; NULL: no timestamps
    int record_plan "vkrt_record_plan"(CommandPool* pool, Handles* handles, const Records* records,
                                       const ExecutionPlanRow* plan, const Kernel* kernels,
                                       const DescriptorPool* sets, const TimestampQueries* queries,
                                       Recording* recording, Error* error)
    # The device must be done with it. May be called again.
    void close_recording "vkrt_close_recording"(Recording* recording)
