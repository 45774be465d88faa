from libc.stdint cimport uint32_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from vkrt.core.command cimport (
    begin_commands, close_command_buffer, end_commands, make_command_buffer,
)
from vkrt.core.error cimport VKRT_ERROR_MEMORY, VKRT_OK, fail
from vkrt.core.records cimport SubmissionRecordRow
from vkrt.core.recording cimport StepClock, record_commands
from vkrt.core.timestamps cimport reset_timestamps


cdef int record_plan(CommandPool* pool, Handles* handles, const Records* records,
                     const ExecutionPlanRow* plan, const Kernel* kernels,
                     const DescriptorPool* sets, const TimestampQueries* queries,
                     Recording* recording, Error* error) noexcept nogil:
    cdef const SubmissionRecordRow* row = records.submission_record + plan.submissions.first
    cdef RecordedSubmission* item
    cdef StepClock clock
    cdef uint32_t dispatches = 0
    cdef int64_t i
    clock.queries, clock.step = queries, 0
    recording.count = plan.submissions.count
    recording.items = <RecordedSubmission*>calloc(<size_t>recording.count + 1,
                                                  sizeof(RecordedSubmission))
    if recording.items == NULL:
        return fail(error, VKRT_ERROR_MEMORY, b"the commands of a plan: the host is out of memory")
    for i in range(recording.count):
        item = &recording.items[i]
        if (make_command_buffer(pool, &item.commands, error)
                or begin_commands(&item.commands, False, error)):
            return error.status
        if queries != NULL and i == 0:
            reset_timestamps(&item.commands, queries)
        if (record_commands(&item.commands, handles, records, &row[i].commands, kernels, sets,
                            &dispatches, &clock if queries != NULL else NULL, error)
                or end_commands(&item.commands, error)):
            return error.status
        if row[i].host.is_there:
            item.host = &row[i].host.value
            clock.step += 1
    return VKRT_OK


cdef void close_recording(Recording* recording) noexcept nogil:
    cdef int64_t i
    if recording.items != NULL:
        for i in range(recording.count):
            close_command_buffer(&recording.items[i].commands)
    free(recording.items)
    memset(recording, 0, sizeof(recording[0]))
