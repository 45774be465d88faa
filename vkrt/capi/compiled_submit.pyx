from libc.stdint cimport int64_t

from vkrt.capi.compiled_buffers cimport (
    TakenSubmission, check_input_buffers, check_output_buffers, free_submission, take_submission,
)
from vkrt.capi.compiled_handles cimport find_state
from vkrt.capi.compiled_inputs cimport Call, find_shape
from vkrt.capi.failure cimport failed, refuse
from vkrt.capi.table cimport VKRT_OK
from vkrt.core.atomic cimport atomic_read
from vkrt.core.buffer_executions cimport drop_buffer_executions
from vkrt.core.error cimport VKRT_ERROR_INPUT, Error
from vkrt.core.loaded_program cimport MethodState, wait_for_run
from vkrt.core.submitted_run cimport submit_run, wait_for_submitted
from vkrt.core.threads cimport pthread_mutex_lock, pthread_mutex_unlock


cdef int submit_locked(Call* call, size_t handle, TakenSubmission* taken,
                       uint64_t* copied) noexcept nogil:
    """A submission whose inputs are checked, by the only thread that uses the method."""
    cdef MethodState* state
    cdef Error error
    if find_state(call.failure, call.method, handle, &state):
        return call.failure.code
    if submit_run(state, call.shape, taken.inputs, taken.outputs, &taken.waits, &taken.signals,
                  copied, &error):
        return failed(call.failure, &error)
    return VKRT_OK


cdef int submit_taken(Call* call, size_t handle, TakenSubmission* taken,
                      uint64_t* copied) noexcept nogil:
    cdef ProgramMethod* method = call.method
    cdef int status
    if (check_input_buffers(call, taken) or find_shape(call) or check_output_buffers(call, taken)):
        return call.failure.code
    pthread_mutex_lock(&method.lock)
    status = submit_locked(call, handle, taken, copied)
    pthread_mutex_unlock(&method.lock)
    return status


cdef int submit_buffers(vkrt_failure* failure, ProgramMethod* method, size_t state,
                        const vkrt_submission* submission, uint64_t* copied) noexcept nogil:
    cdef LoadedProgram* program = method.program
    cdef TakenSubmission taken
    cdef Call call
    cdef int status
    if method.constants != NULL:
        return refuse(failure, VKRT_ERROR_INPUT, b"this method only returns numbers, which a "
                      b"VkBuffer cannot hold: call vkrt_run")
    if not program.device.is_host_device:
        return refuse(failure, VKRT_ERROR_INPUT, b"the program runs on a device of vkrt's own, "
                      b"which has no buffers of the host's: load it with "
                      b"vkrt_options.host_device")
    status = take_submission(failure, &program.device.device, submission, &taken)
    if status == VKRT_OK:
        call = Call(failure, method, &program.program.records, taken.tensors,
                    submission.input_count, NULL, submission.output_count, 0)
        status = submit_taken(&call, state, &taken, copied)
    free_submission(&taken)
    return status


cdef int wait_for_buffers(vkrt_failure* failure, ProgramMethod* method) noexcept nogil:
    cdef Error error
    cdef int status
    pthread_mutex_lock(&method.lock)
    status = wait_for_submitted(method, &error)
    pthread_mutex_unlock(&method.lock)
    return status if status == VKRT_OK else failed(failure, &error)


cdef int forget_buffers(vkrt_failure* failure, LoadedProgram* program) noexcept nogil:
    """Of all methods, also where one of them has been left with a run that failed."""
    cdef ProgramMethod* method
    cdef Error error
    cdef int status = VKRT_OK
    cdef int64_t i
    for i in range(program.method_count):
        method = &program.methods[i]
        if not atomic_read(&method.is_loaded):
            continue
        pthread_mutex_lock(&method.lock)
        if wait_for_run(method, &error):
            status = failed(failure, &error)
        drop_buffer_executions(method, NULL)
        pthread_mutex_unlock(&method.lock)
    return status
