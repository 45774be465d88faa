# cython: language_level=3

from libc.stdint cimport uint32_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from vkrt.core.block cimport Block
from vkrt.core.command cimport (
    begin_commands, close_command_buffer, close_command_pool, end_commands, make_command_buffer,
    make_command_pool,
)
from vkrt.core.descriptors cimport close_descriptor_pool
from vkrt.core.error cimport VKRT_ERROR_INTERNAL, VKRT_ERROR_MEMORY, VKRT_OK, fail
from vkrt.core.fence cimport (
    WITHOUT_END, close_fence, make_fence, submit, wait_and_poll, wait_for_fence,
)
from vkrt.core.handles cimport (
    bind_handles, close_handles, make_handles, open_handles, share_handles,
)
from vkrt.core.kernels cimport get_kernels
from vkrt.core.records cimport BlockRow, SubmissionRecordRow
from vkrt.core.recording cimport make_sets, record_commands


cdef int open_execution(Execution* execution, const Records* records, const ExecutionPlanRow* plan,
                        Kernels* kernels, bint odd, Error* error) noexcept nogil:
    cdef size_t submissions = <size_t>plan.submissions.count
    memset(execution, 0, sizeof(execution[0]))
    execution.records, execution.plan = records, plan
    execution.kernels = <const Kernel**>calloc(<size_t>plan.kernels.count + 1, sizeof(void*))
    execution.sets = <DescriptorPool*>calloc(submissions + 1, sizeof(DescriptorPool))
    execution.commands = <CommandBuffer*>calloc(submissions + 1, sizeof(CommandBuffer))
    if execution.kernels == NULL or execution.sets == NULL or execution.commands == NULL:
        return fail(error, VKRT_ERROR_MEMORY, b"the commands of a plan: the host is out of memory")
    if (open_handles(&execution.handles, kernels.device, records, &plan.storages, odd, error)
            or get_kernels(kernels, &plan.kernels, execution.kernels, error)):
        return error.status
    return VKRT_OK


cdef Block* find_block(Blocks* arena, const BlockRow* planned) noexcept nogil:
    """The block of the arena that a planned one is, or a part of."""
    cdef const BlockRow* rows = arena.records.block + arena.planned.first
    cdef int64_t i
    for i in range(arena.planned.count):
        if (rows[i].kind == planned.kind and rows[i].type_bits == planned.type_bits
                and rows[i].nbytes >= planned.nbytes):
            return &arena.items[i]
    return NULL


cdef int bind_activations(Execution* execution, Blocks* arena, Error* error) noexcept nogil:
    cdef const BlockRow* planned = execution.records.block + execution.plan.blocks.first
    cdef Block* block
    cdef int64_t i
    for i in range(execution.plan.blocks.count):
        block = find_block(arena, planned + i)
        if block == NULL:
            return fail(error, VKRT_ERROR_INTERNAL, b"block %d: the arena has none for it", <int>i)
        if (make_handles(&execution.handles, planned + i, error)
                or bind_handles(&execution.handles, planned + i, block, error)):
            return error.status
    return VKRT_OK


cdef int record_submission(Execution* execution, int64_t number, Error* error) noexcept nogil:
    cdef const SubmissionRecordRow* row = (execution.records.submission_record
                                           + execution.plan.submissions.first + number)
    cdef CommandBuffer* commands = &execution.commands[number]
    cdef DescriptorPool* sets = &execution.sets[number]
    cdef uint32_t first = 0
    if (make_sets(&execution.handles, &row.commands, execution.kernels, sets, error)
            or make_command_buffer(&execution.pool, commands, error)
            or begin_commands(commands, False, error)
            or record_commands(commands, &execution.handles, &row.commands, execution.kernels,
                               sets, &first, error)
            or end_commands(commands, error)):
        return error.status
    return VKRT_OK


cdef int bind_execution(Execution* execution, const Handles* others, Blocks* arena,
                        Error* error) noexcept nogil:
    cdef int64_t i
    share_handles(&execution.handles, others)
    if (bind_activations(execution, arena, error)
            or make_command_pool(execution.handles.device, False, &execution.pool, error)
            or make_fence(execution.handles.device, &execution.fence, error)):
        return error.status
    for i in range(execution.plan.submissions.count):
        if record_submission(execution, i, error):
            return error.status
    return VKRT_OK


cdef int run_execution(Execution* execution, Poll poll, void* data, Error* error) noexcept nogil:
    cdef bint done
    cdef int64_t i
    if settle_execution(execution, error):
        return error.status
    for i in range(execution.plan.submissions.count):
        if submit(&execution.commands[i], &execution.fence, error):
            return error.status
        # A device that fails is not at work any more.
        if poll == NULL:
            if wait_for_fence(&execution.fence, WITHOUT_END, &done, error):
                return error.status
            continue
        done = False
        if wait_and_poll(&execution.fence, WITHOUT_END, poll, data, &done, error):
            execution.pending = not done
            return error.status
    return VKRT_OK


cdef int settle_execution(Execution* execution, Error* error) noexcept nogil:
    cdef bint done
    if not execution.pending:
        return VKRT_OK
    execution.pending = False
    return wait_for_fence(&execution.fence, WITHOUT_END, &done, error)


cdef void close_execution(Execution* execution) noexcept nogil:
    cdef int64_t i
    if execution.commands != NULL and execution.sets != NULL:
        for i in range(execution.plan.submissions.count):
            if execution.commands[i].pool != NULL:
                close_command_buffer(&execution.commands[i])
            if execution.sets[i].device != NULL:
                close_descriptor_pool(&execution.sets[i])
    if execution.pool.device != NULL:
        close_command_pool(&execution.pool)
    if execution.fence.device != NULL:
        close_fence(&execution.fence)
    close_handles(&execution.handles)
    free(execution.kernels)
    free(execution.sets)
    free(execution.commands)
    memset(execution, 0, sizeof(execution[0]))
