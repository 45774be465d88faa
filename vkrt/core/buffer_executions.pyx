from libc.stdint cimport uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy

from vkrt.core.error cimport VKRT_ERROR_MEMORY, VKRT_OK, fail
from vkrt.core.execution cimport close_execution
from vkrt.core.external_plan cimport ExternalPlan, copied_bytes, free_external_plan, plan_external
from vkrt.core.method cimport plan_at
from vkrt.core.method_state cimport make_execution
from vkrt.core.profile cimport steps_of
from vkrt.core.records cimport ExecutionPlanRow, Records


cdef uint64_t bytes_of(const Records* records, const ExecutionPlanRow* plan) noexcept nogil:
    cdef int64_t steps = 0, i
    for i in range(plan.submissions.first, plan.submissions.first + plan.submissions.count):
        steps += steps_of(records, records.submission_record + i)
    return <uint64_t>steps * STEP_BYTES


# What is kept

cdef void remove_at(BufferExecution** place) noexcept nogil:
    cdef BufferExecution* removed = place[0]
    place[0] = removed.next
    close_execution(&removed.execution)
    free(removed.buffers)
    free(removed)


cdef void drop_buffer_executions(ProgramMethod* method, const MethodState* state) noexcept nogil:
    cdef BufferExecution** place = &method.over_buffers
    while place[0] != NULL:
        if state == NULL or place[0].state == state:
            remove_at(place)
        else:
            place = &place[0].next


cdef void make_room(ProgramMethod* method, uint64_t nbytes) noexcept nogil:
    """Those that were run longest ago go where there are many."""
    cdef BufferExecution** place = &method.over_buffers
    cdef int count = 1
    while place[0] != NULL:
        nbytes += place[0].nbytes
        count += 1
        if count > LEAST and nbytes > MAX_BYTES:
            while place[0] != NULL:
                remove_at(place)
        else:
            place = &place[0].next


cdef bint are_same(const ExternalBuffer* one, const ExternalBuffer* other,
                   int64_t count) noexcept nogil:
    cdef int64_t i
    for i in range(count):
        if (one[i].handle != other[i].handle or one[i].offset != other[i].offset
                or one[i].nbytes != other[i].nbytes):
            return False
    return True


cdef BufferExecution* find_kept(MethodState* state, int64_t shape, const ExternalBuffer* inputs,
                                const ExternalBuffer* outputs,
                                const ExecutionPlanRow* plan) noexcept nogil:
    """The one of these buffers, which then is the first; NULL where it is not kept."""
    cdef BufferExecution** place = &state.method.over_buffers
    cdef BufferExecution* found
    while place[0] != NULL:
        found = place[0]
        if (found.state == state and found.shape == shape
                and are_same(found.buffers, inputs, plan.inputs.count)
                and are_same(found.buffers + plan.inputs.count, outputs, plan.outputs.count)):
            place[0] = found.next
            put_first(state.method, found)
            return found
        place = &found.next
    return NULL


cdef void put_first(ProgramMethod* method, BufferExecution* execution) noexcept nogil:
    execution.next = method.over_buffers
    method.over_buffers = execution


# What is new

cdef int record_buffers(BufferExecution* made, const ExternalBuffer* inputs,
                        const ExternalBuffer* outputs, const ExecutionPlanRow* plan,
                        Error* error) noexcept nogil:
    cdef ProgramMethod* method = made.state.method
    cdef ExternalPlan planned
    cdef int status = plan_external(&method.program.program.records, plan,
                                    <uint64_t>method.row.largest.executable.offset_alignment,
                                    inputs, outputs, &planned, error)
    if status == VKRT_OK:
        made.copied = copied_bytes(&planned.binding)
        status = make_execution(made.state, made.shape, &planned.binding, &made.execution, error)
    free_external_plan(&planned)
    return status


cdef int use_buffers(MethodState* state, int64_t shape, const ExternalBuffer* inputs,
                     const ExternalBuffer* outputs, BufferExecution** found,
                     Error* error) noexcept nogil:
    cdef const Records* records = &state.method.program.program.records
    cdef const ExecutionPlanRow* plan = plan_at(records, state.method.row, shape)
    cdef BufferExecution* made = find_kept(state, shape, inputs, outputs, plan)
    cdef size_t given = <size_t>plan.inputs.count
    cdef size_t results = <size_t>plan.outputs.count
    found[0] = made
    if made != NULL:
        return VKRT_OK
    made = <BufferExecution*>calloc(1, sizeof(BufferExecution))
    if made == NULL:
        return fail(error, VKRT_ERROR_MEMORY, b"external buffers: the host is out of memory")
    made.state, made.shape, made.nbytes = state, shape, bytes_of(records, plan)
    made.buffers = <ExternalBuffer*>calloc(given + results + 1, sizeof(ExternalBuffer))
    if made.buffers == NULL:
        fail(error, VKRT_ERROR_MEMORY, b"external buffers: the host is out of memory")
    elif record_buffers(made, inputs, outputs, plan, error) == VKRT_OK:
        memcpy(made.buffers, inputs, given * sizeof(ExternalBuffer))
        memcpy(made.buffers + given, outputs, results * sizeof(ExternalBuffer))
        make_room(state.method, made.nbytes)
        put_first(state.method, made)
        found[0] = made
        return VKRT_OK
    free(made.buffers)
    free(made)
    return error.status
