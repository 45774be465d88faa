from libc.stdint cimport uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

from vkrt.core.blocks cimport allocate_planned, free_blocks, plan_blocks
from vkrt.core.command cimport barrier, begin_commands, fill_buffer, update_buffer
from vkrt.core.error cimport VKRT_ERROR_MEMORY, VKRT_OK, fail
from vkrt.core.handles cimport buffer_of, flush_range, host_address, make_handles
from vkrt.core.loading cimport read_jobs
from vkrt.core.once cimport Once, carry_out, close_once, open_once
from vkrt.core.pieces cimport Job
from vkrt.core.records cimport RangeRow
from vkrt.core.resource cimport Buffer
from vkrt.core.vulkan cimport (
    VK_ACCESS_SHADER_WRITE_BIT, VK_ACCESS_TRANSFER_WRITE_BIT, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
    VK_PIPELINE_STAGE_TRANSFER_BIT,
)
from vkrt.core.weight_jobs cimport plain_job


cdef enum:
    # The most that one vkCmdUpdateBuffer takes
    PIECE = 65536
    # Recorded before a submission: bytes of updates are copied into the commands.
    MOST_PIECES = 64


cdef int open_states(Allocator* allocator, const Records* records, const StatePlanRow* plan,
                     Handles* handles, const int64_t* type_bits, States* states,
                     Error* error) noexcept nogil:
    cdef int64_t i
    memset(states, 0, sizeof(states[0]))
    states.records, states.plan, states.handles = records, plan, handles
    if plan_blocks(allocator, allocator, records, &plan.blocks, type_bits, &states.blocks, error):
        return error.status
    for i in range(plan.blocks.first, plan.blocks.first + plan.blocks.count):
        if make_handles(handles, records.block + i, error):
            return error.status
    return VKRT_OK


cdef int allocate_states(States* states, Error* error) noexcept nogil:
    cdef int64_t i
    for i in range(states.plan.blocks.count):
        if allocate_planned(&states.blocks, states.handles, i, error):
            return error.status
    return VKRT_OK


cdef int begin(Once* once, Error* error) noexcept nogil:
    """Commands behind everything that the device did before."""
    if begin_commands(&once.commands, True, error):
        return error.status
    barrier(&once.commands,
            VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT,
            VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT,
            VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_WRITE_BIT)
    return VKRT_OK


cdef int send(Once* once, const Handles* handles, const RangeRow* part, const char* data,
              size_t nbytes, Error* error) noexcept nogil:
    """Writes a part that the host does not see: zeros, and then the bytes, of which the last few
    are filled up to a multiple of 4."""
    cdef uint64_t offset
    cdef const Buffer* buffer = buffer_of(handles, part, &offset)
    cdef char[4] last
    cdef size_t whole = nbytes // 4 * 4
    cdef size_t done = 0, pieces = 0, size
    if begin(once, error):
        return error.status
    fill_buffer(&once.commands, buffer.handle, offset, part.nbytes, 0)
    while done < whole:
        if pieces % MOST_PIECES == 0 and (carry_out(once, error) or begin(once, error)):
            return error.status
        size = min(<size_t>PIECE, whole - done)
        update_buffer(&once.commands, buffer.handle, offset + done, size, data + done)
        done += size
        pieces += 1
    if whole < nbytes:
        memset(last, 0, 4)
        memcpy(last, data + whole, nbytes - whole)
        if carry_out(once, error) or begin(once, error):
            return error.status
        update_buffer(&once.commands, buffer.handle, offset + whole, 4, last)
    return carry_out(once, error)


cdef int write_state(States* states, const StateTensorRow* state, Once* once, const char* data,
                     size_t nbytes, Error* error) noexcept nogil:
    """Zeros everywhere, padding included, and then the bytes."""
    if host_address(states.handles, &state.range) != NULL:
        memset(host_address(states.handles, &state.range), 0, <size_t>state.range.nbytes)
        if nbytes > 0:
            memcpy(host_address(states.handles, &state.range), data, nbytes)
        return flush_range(states.handles, &state.range, error)
    return send(once, states.handles, &state.range, data, nbytes, error)


cdef int read_state(States* states, const StateTensorRow* state, Once* once, Loading* loading,
                    Error* error) noexcept nogil:
    """Gives one of them the value that the file has."""
    cdef char* value = <char*>malloc(<size_t>state.nbytes)
    cdef Job job
    cdef int status
    if value == NULL:
        return fail(error, VKRT_ERROR_MEMORY, b"the value of a state: the host is out of memory")
    job = plain_job(states.records, state.source, state.offset, state.nbytes, &state.name, value)
    status = (read_jobs(loading, &job, 1, error)
              or write_state(states, state, once, value, <size_t>state.nbytes, error))
    free(value)
    return status


cdef bint begins_as_zeros(const StateTensorRow* state) noexcept nogil:
    return state.is_zero or state.nbytes == 0


cdef int fill_states(States* states, Once* once, Error* error) noexcept nogil:
    """Zeros in all that begin as zeros. Where the host does not see them it is one submission: a
    language model has dozens of caches, and each submission is waited for."""
    cdef const StateTensorRow* state = states.records.state_tensor + states.plan.tensors.first
    cdef const Buffer* buffer
    cdef uint64_t offset
    cdef int64_t i
    cdef bint began = False
    for i in range(states.plan.tensors.count):
        if not begins_as_zeros(state + i):
            continue
        if host_address(states.handles, &state[i].range) != NULL:
            if write_state(states, state + i, once, NULL, 0, error):
                return error.status
            continue
        if not began and begin(once, error):
            return error.status
        began = True
        buffer = buffer_of(states.handles, &state[i].range, &offset)
        fill_buffer(&once.commands, buffer.handle, offset, state[i].range.nbytes, 0)
    return carry_out(once, error) if began else VKRT_OK


cdef int reset_states(States* states, Loading* loading, Error* error) noexcept nogil:
    cdef const StateTensorRow* state = states.records.state_tensor + states.plan.tensors.first
    cdef Once once
    cdef int64_t i
    cdef int status
    if states.plan.tensors.count == 0:
        return VKRT_OK
    states.inconsistent = True
    if open_once(states.handles.device, &once, error):
        return error.status
    status = fill_states(states, &once, error)
    for i in range(states.plan.tensors.count):
        if status == VKRT_OK and not begins_as_zeros(state + i):
            status = read_state(states, state + i, &once, loading, error)
    close_once(&once)
    states.inconsistent = status != VKRT_OK
    return status


cdef void close_states(States* states) noexcept nogil:
    free_blocks(&states.blocks)
    memset(states, 0, sizeof(states[0]))
