from libc.stdint cimport int64_t

from vkrt.core.error cimport (
    VKRT_ERROR_DEVICE, VKRT_ERROR_DEVICE_LOST, VKRT_ERROR_DEVICE_MEMORY, VKRT_ERROR_FORKED,
)
from vkrt.core.execution cimport is_one_submission
from vkrt.core.records cimport (
    COMMAND_BARRIER, COMMAND_DISPATCH, ROLE_STATE, DispatchCommandRow, Member, Rows,
    SubmissionRecordRow,
)


cdef bint writes_state(const Records* records, const ExecutionPlanRow* plan,
                       const Member* command) noexcept nogil:
    cdef const DispatchCommandRow* dispatch
    cdef int64_t i, storage
    if command.which != COMMAND_DISPATCH:
        storage = records.copy_command[command.row].target.storage
        return records.storage[plan.storages.first + storage].role == ROLE_STATE
    dispatch = records.dispatch_command + command.row
    for i in range(dispatch.bindings.first, dispatch.bindings.first + dispatch.bindings.count):
        storage = records.binding[i].range.storage
        if (records.binding[i].is_written
                and records.storage[plan.storages.first + storage].role == ROLE_STATE):
            return True
    return False


cdef bint has_state(const Records* records, const ExecutionPlanRow* plan,
                    const Rows* arrays) noexcept nogil:
    cdef int64_t i
    for i in range(arrays.first, arrays.first + arrays.count):
        if records.storage[plan.storages.first
                           + records.host_array[i].range.storage].role == ROLE_STATE:
            return True
    return False


cdef bint changes_states_early(const Records* records, const ExecutionPlanRow* plan) noexcept nogil:
    cdef const SubmissionRecordRow* submission
    cdef const Member* command
    cdef bint changed = False
    cdef int64_t i, k
    for i in range(plan.submissions.first, plan.submissions.first + plan.submissions.count):
        submission = records.submission_record + i
        for k in range(submission.commands.count):
            command = records.command + submission.commands.first + k
            if command.which == COMMAND_BARRIER:
                continue
            if writes_state(records, plan, command):
                changed = True
            elif changed:
                return True
        if not submission.host.is_there:
            continue
        if has_state(records, plan, &submission.host.value.writes):
            changed = True
        elif changed:
            return True
    return False


cdef bint leaves_states(const Execution* execution, const Error* error) noexcept nogil:
    cdef bint failed = error.status in (VKRT_ERROR_DEVICE, VKRT_ERROR_DEVICE_LOST,
                                        VKRT_ERROR_DEVICE_MEMORY, VKRT_ERROR_FORKED)
    return ((failed or not is_one_submission(execution))
            and changes_states_early(execution.records, execution.plan))
