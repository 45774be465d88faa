cimport libc.errno as system_errno
from libc.string cimport memset

from vkrt.core.batch cimport free_semaphore_list
from vkrt.core.buffer_executions cimport use_buffers
from vkrt.core.error cimport VKRT_ERROR_CANCELLED, VKRT_ERROR_SYSTEM, VKRT_OK, fail
from vkrt.core.execution cimport (
    Execution, is_at_work, is_on_device, wait_for_execution, start_execution,
)
from vkrt.core.loaded_program cimport (
    BufferExecution, SubmittedRun, is_cancelled, note_state, run_over, set_running, wait_for_run,
)
from vkrt.core.method_state cimport check_state
from vkrt.core.threads cimport join_thread, start_thread


cdef const SemaphoreList* listed(const SemaphoreList* semaphores) noexcept nogil:
    return semaphores if semaphores.size else NULL


# Begins

cdef void note_run(MethodState* state, Execution* execution, bint is_over) noexcept nogil:
    cdef SubmittedRun* run = &state.method.submitted
    run.state, run.execution, run.is_over = state, execution, is_over
    run.status = VKRT_OK


cdef int start_on_device(MethodState* state, Execution* execution, const SemaphoreList* waits,
                         const SemaphoreList* signals, Error* error) noexcept nogil:
    if start_execution(execution, waits, signals, error):
        note_state(state, execution, error)
        if is_at_work(execution):
            state.method.unfinished = execution
        return error.status
    note_run(state, execution, False)
    return VKRT_OK


cdef void* carry_out(void* data) noexcept nogil:
    cdef SubmittedRun* run = &(<ProgramMethod*>data).submitted
    run.status = run_over(run.state, run.execution, listed(&run.waits), listed(&run.signals),
                          &run.error)
    return NULL


cdef int start_in_thread(MethodState* state, Execution* execution, SemaphoreList* waits,
                         SemaphoreList* signals, Error* error) noexcept nogil:
    cdef SubmittedRun* run = &state.method.submitted
    cdef SubmittedRun before = run[0]
    cdef int number
    note_run(state, execution, False)
    run.waits, run.signals = waits[0], signals[0]
    number = start_thread(&run.thread, carry_out, state.method, b"vkrt-run")
    if number != 0:
        run[0] = before
        system_errno.errno = number
        return fail(error, VKRT_ERROR_SYSTEM, b"the thread of a run cannot be started")
    run.has_thread = True
    memset(waits, 0, sizeof(waits[0]))
    memset(signals, 0, sizeof(signals[0]))
    return VKRT_OK


cdef int submit_run(MethodState* state, int64_t shape, const ExternalBuffer* inputs,
                    const ExternalBuffer* outputs, SemaphoreList* waits, SemaphoreList* signals,
                    uint64_t* copied, Error* error) noexcept nogil:
    cdef BufferExecution* found
    if (wait_for_run(state.method, error) or check_state(state, error)
            or use_buffers(state, shape, inputs, outputs, &found, error)):
        return error.status
    copied[0] = found.copied
    if is_on_device(&found.execution):
        return start_on_device(state, &found.execution, listed(waits), listed(signals), error)
    if not signals.has_binary:
        return start_in_thread(state, &found.execution, waits, signals, error)
    if run_over(state, &found.execution, listed(waits), listed(signals), error):
        return error.status
    note_run(state, &found.execution, True)
    return VKRT_OK


# Ends

cdef int finish_submitted(ProgramMethod* method, Poll poll, void* data,
                          Error* error) noexcept nogil:
    cdef SubmittedRun* run = &method.submitted
    if run.execution == NULL or run.is_over:
        return VKRT_OK
    if run.has_thread:
        join_thread(run.thread)
        run.has_thread = False
        free_semaphore_list(&run.waits)
        free_semaphore_list(&run.signals)
    else:
        run.status = wait_for_execution(run.execution, poll, data, &run.error)
        if run.status == VKRT_ERROR_CANCELLED:
            error[0] = run.error
            return VKRT_ERROR_CANCELLED
        if run.status != VKRT_OK:
            note_state(run.state, run.execution, &run.error)
    run.is_over = True
    return VKRT_OK


cdef int wait_for_submitted(ProgramMethod* method, Error* error) noexcept nogil:
    cdef SubmittedRun* run = &method.submitted
    cdef int status
    if run.has_thread:  # which `cancel_method` ends
        finish_submitted(method, NULL, NULL, error)
    else:
        set_running(method, True)
        status = finish_submitted(method, is_cancelled, method, error)
        set_running(method, False)
        if status != VKRT_OK:
            return fail(error, VKRT_ERROR_CANCELLED, b"the run was cancelled")
    if run.execution != NULL and run.status != VKRT_OK:
        error[0] = run.error
        return run.status
    return VKRT_OK
