from libc.stdint cimport uint64_t
from libc.stdlib cimport calloc, free

from vkrt.core.buffer_executions cimport drop_buffer_executions
from vkrt.core.error cimport VKRT_ERROR_MEMORY, VKRT_ERROR_STATE, VKRT_OK, fail
from vkrt.core.execution cimport close_execution
from vkrt.core.file cimport check_unchanged
from vkrt.core.handles cimport close_handles, open_handles
from vkrt.core.loaded_program cimport LoadedProgram, wait_for_run
from vkrt.core.loading cimport Loading, loading_by
from vkrt.core.method cimport bind_shape, open_shape, plan_at, use_shape
from vkrt.core.records cimport Records, StatePlanRow
from vkrt.core.state_values cimport load_states, save_states
from vkrt.core.states cimport allocate_states, close_states, open_states, reset_states
from vkrt.core.threads cimport pthread_mutex_lock, pthread_mutex_unlock


cdef const StatePlanRow* plan_of(const ProgramMethod* method) noexcept nogil:
    return &method.row.largest.executable.states


cdef uint64_t nbytes_of(const ProgramMethod* method) noexcept nogil:
    """Bytes of device memory."""
    cdef const Records* records = method.method.session.records
    cdef const StatePlanRow* plan = plan_of(method)
    cdef uint64_t nbytes = 0
    cdef int64_t i
    for i in range(plan.blocks.first, plan.blocks.first + plan.blocks.count):
        nbytes += <uint64_t>records.block[i].nbytes
    return nbytes


cdef void add_figure(ProgramMethod* method, uint64_t nbytes) noexcept nogil:
    """Takes that the program's states have so many bytes more; less than 0 as it is unsigned."""
    pthread_mutex_lock(&method.program.lock)
    method.program.figures.state += nbytes
    pthread_mutex_unlock(&method.program.lock)


cdef int open_new(MethodState* state, Error* error) noexcept nogil:
    cdef ProgramMethod* method = state.method
    cdef LoadedProgram* program = method.program
    cdef const Records* records = &program.program.records
    state.executions = <Execution*>calloc(<size_t>method.row.others.count + 1, sizeof(Execution))
    if state.executions == NULL:
        return fail(error, VKRT_ERROR_MEMORY, b"a state: the host is out of memory")
    return (open_handles(&program.device.device, records, &plan_at(records, method.row, 0).storages,
                         program.session.padded, &state.handles, error)
            or open_states(&program.session.allocator, records, plan_of(method), &state.handles,
                           program.type_bits, &state.own, error)
            or allocate_states(&state.own, error) or reset_state(state, error))


cdef int make_state(ProgramMethod* method, MethodState** state, Error* error) noexcept nogil:
    cdef MethodState* made = <MethodState*>calloc(1, sizeof(MethodState))
    state[0] = NULL
    if made == NULL:
        return fail(error, VKRT_ERROR_MEMORY, b"a state: the host is out of memory")
    made.method, made.states, made.next = method, &made.own, method.further
    method.further = made
    add_figure(method, nbytes_of(method))
    if wait_for_run(method, error) or open_new(made, error):
        close_state(made)
        return error.status
    state[0] = made
    return VKRT_OK


cdef void close_state(MethodState* state) noexcept nogil:
    cdef ProgramMethod* method = state.method
    cdef MethodState** place = &method.further
    cdef Error error
    cdef int64_t i
    wait_for_run(method, &error)
    drop_buffer_executions(method, state)
    while place[0] != state:
        place = &place[0].next
    place[0] = state.next
    if state.executions != NULL:
        for i in range(method.row.others.count + 1):
            close_execution(&state.executions[i])
    if method.method.executions == state.executions:
        method.method.executions = method.first.executions
    free(state.executions)
    close_handles(&state.handles)
    close_states(&state.own)
    free(state)
    add_figure(method, -nbytes_of(method))


cdef int make_execution(MethodState* state, int64_t shape, const IOBinding* binding,
                        Execution* execution, Error* error) noexcept nogil:
    cdef ProgramMethod* method = state.method
    cdef LoadedProgram* program = method.program
    cdef int status
    pthread_mutex_lock(&program.lock)
    status = open_shape(&method.method, shape, execution, error)
    pthread_mutex_unlock(&program.lock)
    if status == VKRT_OK:
        status = bind_shape(&method.method, execution,
                            NULL if state == &method.first else &state.handles, binding, error)
    if status != VKRT_OK:
        close_execution(execution)
    return status


cdef int check_state(const MethodState* state, Error* error) noexcept nogil:
    if not state.states.inconsistent:
        return VKRT_OK
    return fail(error, VKRT_ERROR_STATE, b"a run that failed has left what the method keeps from "
                b"run to run half changed; call vkrt_state_reset or vkrt_state_load")


cdef int use_state(ProgramMethod* method, MethodState* state, int64_t shape,
                   Error* error) noexcept nogil:
    if wait_for_run(method, error) or check_state(state, error):
        return error.status
    if state.executions[shape].plan == NULL and make_execution(
            state, shape, NULL, &state.executions[shape], error):
        return error.status
    method.method.executions = state.executions
    return use_shape(&method.method, shape, error)


cdef int reset_state(MethodState* state, Error* error) noexcept nogil:
    cdef LoadedProgram* program = state.method.program
    cdef Loading loading = loading_by(&program.session.reader)
    cdef int status
    if wait_for_run(state.method, error) or check_unchanged(&program.file, error):
        return error.status
    pthread_mutex_lock(&program.lock)
    status = reset_states(state.states, &loading, error)
    pthread_mutex_unlock(&program.lock)
    return status


# Values

cdef int64_t state_tensors(const ProgramMethod* method,
                           const StateTensorRow** tensors) noexcept nogil:
    cdef const StatePlanRow* plan = plan_of(method)
    tensors[0] = method.program.program.records.state_tensor + plan.tensors.first
    return plan.tensors.count


cdef int save_values(MethodState* state, char* values, Error* error) noexcept nogil:
    return wait_for_run(state.method, error) or save_states(state.states, values, error)


cdef int load_values(MethodState* state, const char* values, Error* error) noexcept nogil:
    return wait_for_run(state.method, error) or load_states(state.states, values, error)
