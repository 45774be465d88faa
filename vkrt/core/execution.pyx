from libc.stdint cimport int64_t
from libc.stdlib cimport free
from libc.string cimport memset

from vkrt.core.batch cimport submit_batch
from vkrt.core.block cimport Block
from vkrt.core.command cimport close_command_pool, make_command_pool
from vkrt.core.descriptors cimport close_descriptor_pool
from vkrt.core.device cimport give_up
from vkrt.core.error cimport (
    VKRT_ERROR_DEVICE_LOST, VKRT_ERROR_FORKED, VKRT_ERROR_UNSUPPORTED, VKRT_OK, fail, need,
)
from vkrt.core.external cimport (
    begin_external, close_external, end_external, place_external, record_external,
)
from vkrt.core.fence cimport Fence
from vkrt.core.handles cimport (
    bind_handles, close_handles, make_handles, open_handles, share_handles,
)
from vkrt.core.host_kernel cimport run_host_kernel
from vkrt.core.recorded cimport close_recording, record_plan
from vkrt.core.recording cimport make_submission_sets
from vkrt.core.records cimport BlockRow
from vkrt.core.streamer cimport rest_streamer, run_streamed
from vkrt.core.submission cimport (
    close_submission, finish_submission, is_submission_done, open_submission, run_commands,
)


cdef int open_execution(Device* device, const Records* records, const ExecutionPlanRow* plan,
                        Kernel* kernels, bint padded, Execution* execution,
                        Error* error) noexcept nogil:
    memset(execution, 0, sizeof(execution[0]))
    execution.device, execution.padded = device, padded
    execution.records, execution.plan, execution.kernels = records, plan, kernels
    return VKRT_OK


cdef int bind_activations(Execution* execution, Block* const* memory, Error* error) noexcept nogil:
    cdef const BlockRow* planned = execution.records.block + execution.plan.blocks.first
    cdef int64_t i
    for i in range(execution.plan.blocks.count):
        if (make_handles(&execution.handles, planned + i, error)
                or bind_handles(&execution.handles, planned + i, memory[i], error)):
            return error.status
    return VKRT_OK


cdef int make_commands(Execution* execution, const Handles* const* others, size_t count,
                       Block* const* memory, const IOBinding* binding,
                       Error* error) noexcept nogil:
    cdef Handles* handles = &execution.handles
    cdef size_t i
    if open_handles(execution.device, execution.records, &execution.plan.storages, execution.padded,
                    handles, error):
        return error.status
    for i in range(count):
        share_handles(handles, others[i])
    return (bind_activations(execution, memory, error)
            or place_external(&execution.external, handles, binding, error)
            or make_command_pool(execution.device, False, &execution.pool, error)
            or open_submission(execution.device, &execution.submission, error)
            or make_submission_sets(
                handles, execution.records,
                execution.records.submission_record + execution.plan.submissions.first,
                execution.plan.submissions.count, execution.kernels, &execution.sets, error)
            or record_plan(&execution.pool, handles, execution.records, execution.plan,
                           execution.kernels, &execution.sets, NULL, &execution.recording, error)
            or record_external(handles, binding, &execution.pool, &execution.external, error))


cdef int bind_execution(Execution* execution, const Handles* const* others, size_t count,
                        Block* const* memory, const IOBinding* binding,
                        Error* error) noexcept nogil:
    if make_commands(execution, others, count, memory, binding, error):
        unbind_execution(execution)
        return error.status
    return VKRT_OK


# Runs

cdef int run_recording(Execution* execution, const Recording* recording, const Handles* handles,
                       const Host* host, bint skips, Error* error) noexcept nogil:
    cdef bint skipping = False
    cdef int64_t i
    if execution.streamer != NULL:
        return run_streamed(execution.streamer, recording, handles, execution.reader, host, error)
    for i in range(recording.count):
        if not (skipping and skips) and run_commands(
                &execution.submission, &recording.items[i].commands, host.poll, host.poll_data,
                error):
            return error.status
        if recording.items[i].host != NULL and run_host_kernel(
                host, execution.reader, handles, recording.items[i].host, i, &skipping, error):
            return error.status
    return VKRT_OK


cdef int hand_back(Execution* execution, const SemaphoreList** signals,
                   Error* error) noexcept nogil:
    """Submits what comes behind a run; there are no `signals` from then on."""
    if end_external(&execution.external, signals[0], &execution.submission.fence, error):
        return error.status
    signals[0] = NULL
    execution.submission.pending = True
    return VKRT_OK


cdef void leave(Execution* execution, const SemaphoreList* signals, bint has_no_fence,
                Error* failure) noexcept nogil:
    """Leaves a run that has failed or was cancelled to the device.

    Args:
        signals: those that are not submitted yet, if any: nobody is to wait for them in vain.
        has_no_fence: whether something may have been submitted with none behind it.
        failure: becomes that of the device, where it had to be given up.
    """
    cdef Error error
    cdef const Fence* fence = NULL
    if not execution.submission.pending:
        fence = &execution.submission.fence
    has_no_fence = has_no_fence and fence != NULL
    if signals == NULL and not has_no_fence:
        return
    if submit_batch(execution.device, False, NULL, NULL, signals, fence, &error) == VKRT_OK:
        execution.submission.pending = True
    elif error.status in (VKRT_ERROR_DEVICE_LOST, VKRT_ERROR_FORKED):
        return  # which is at work on nothing
    elif has_no_fence:
        give_up(execution.device, &error)
        failure[0] = error


cdef int run_between(Execution* execution, const Host* host, const SemaphoreList* waits,
                     const SemaphoreList** signals, Error* error) noexcept nogil:
    if (begin_external(&execution.external, waits, error)
            or run_recording(execution, &execution.recording, &execution.handles, host,
                             execution.plan.skips_branches, error)):
        return error.status
    if signals[0] == NULL and execution.external.copy_out.handle == NULL:
        return VKRT_OK
    return (hand_back(execution, signals, error)
            or finish_submission(&execution.submission, host.poll, host.poll_data, error))


cdef int run_execution(Execution* execution, const Host* host, const SemaphoreList* waits,
                       const SemaphoreList* signals, Error* error) noexcept nogil:
    if (need(execution.handles.items != NULL, error)
            or wait_for_execution(execution, host.poll, host.poll_data, error)):
        return error.status
    if run_between(execution, host, waits, &signals, error):
        leave(execution, signals, execution.external.copy_in.handle != NULL, error)
        return error.status
    return VKRT_OK


cdef int submit_all(Execution* execution, const SemaphoreList* waits,
                    const SemaphoreList** signals, Error* error) noexcept nogil:
    cdef int64_t i
    if begin_external(&execution.external, waits, error):
        return error.status
    for i in range(execution.recording.count):
        if submit_batch(execution.device, False, &execution.recording.items[i].commands,
                        NULL, NULL, NULL, error):
            return error.status
    return hand_back(execution, signals, error)


cdef int start_execution(Execution* execution, const SemaphoreList* waits,
                         const SemaphoreList* signals, Error* error) noexcept nogil:
    if not is_on_device(execution):
        return fail(error, VKRT_ERROR_UNSUPPORTED, b"the host has to do something in the middle of "
                    b"a run, which cannot be started without waiting for it")
    if (need(execution.handles.items != NULL, error)
            or wait_for_execution(execution, NULL, NULL, error)):
        return error.status
    if submit_all(execution, waits, &signals, error):
        leave(execution, signals, True, error)
        return error.status
    return VKRT_OK


cdef int copy_external_inputs(Execution* execution, const Host* host, Error* error) noexcept nogil:
    if execution.external.copy_in.handle == NULL:
        return VKRT_OK
    return run_commands(&execution.submission, &execution.external.copy_in, host.poll,
                        host.poll_data, error)


cdef bint is_one_submission(const Execution* execution) noexcept nogil:
    return execution.recording.count <= 1 and execution.streamer == NULL


cdef bint is_on_device(const Execution* execution) noexcept nogil:
    cdef int64_t i
    for i in range(execution.recording.count):
        if execution.recording.items[i].host != NULL:
            return False
    return execution.streamer == NULL


# Ends

cdef bint is_at_work(const Execution* execution) noexcept nogil:
    # In a forked child the run is the parent's.
    if execution.device == NULL or execution.device.calls.inherited:
        return False
    return (execution.submission.pending
            or execution.streamer != NULL and execution.streamer.broken)


cdef int is_execution_done(const Execution* execution, bint* done, Error* error) noexcept nogil:
    done[0] = not is_at_work(execution)
    if done[0] or execution.streamer != NULL:
        return VKRT_OK
    return is_submission_done(&execution.submission, done, error)


cdef int wait_for_execution(Execution* execution, Poll poll, void* data,
                            Error* error) noexcept nogil:
    if not is_at_work(execution):
        return VKRT_OK
    if execution.streamer != NULL and rest_streamer(execution.streamer, poll, data, error):
        return error.status
    return finish_submission(&execution.submission, poll, data, error)


cdef void unbind_execution(Execution* execution) noexcept nogil:
    cdef Error error  # which whoever runs on the device next will hear of; it is at work no more
    wait_for_execution(execution, NULL, NULL, &error)
    close_recording(&execution.recording)
    close_external(&execution.external)
    close_command_pool(&execution.pool)
    close_submission(&execution.submission)
    close_descriptor_pool(&execution.sets)
    close_handles(&execution.handles)
    memset(&execution.pool, 0, sizeof(execution.pool))
    memset(&execution.sets, 0, sizeof(execution.sets))
    execution.streamer, execution.reader = NULL, NULL


cdef void close_execution(Execution* execution) noexcept nogil:
    unbind_execution(execution)
    free(execution.kernels)
    memset(execution, 0, sizeof(execution[0]))
