from libc.stdint cimport UINT64_MAX
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from vkrt.core.allocator cimport close_allocator, open_allocator
from vkrt.core.block cimport Block
from vkrt.core.blocks cimport allocate_all, find_blocks, free_blocks, plan_blocks
from vkrt.core.arguments cimport check_elements
from vkrt.core.check cimport product_of
from vkrt.core.dtypes cimport itemsize_of
from vkrt.core.error cimport (
    VKRT_ERROR_CANCELLED, VKRT_ERROR_INPUT, VKRT_ERROR_MEMORY, VKRT_OK, fail,
)
from vkrt.core.execution cimport bind_execution, close_execution, open_execution, wait_for_execution
from vkrt.core.handles cimport (
    close_handles, copy_from_range, copy_to_array, open_handles, share_handle,
)
from vkrt.core.host_kernel cimport refuse_host_kernels
from vkrt.core.kernels cimport Kernel, close_kernels, get_kernels, open_kernels
from vkrt.core.loading cimport Loading, loading_by
from vkrt.core.reader cimport DEFAULT_WINDOW, close_reader, open_reader
from vkrt.core.records cimport (
    CompiledShapeRow, ExecutionPlanRow, MaybeHostArrayRow, PrepackPlanRow, Rows, SharedUseRow,
    WeightPlanRow,
)
from vkrt.core.row_reads cimport has_row_reads
from vkrt.core.states cimport allocate_states, close_states, open_states, reset_states
from vkrt.core.strategies cimport STRATEGY_PREAD
from vkrt.core.streamer cimport close_streamer, open_streamer
from vkrt.core.uploads cimport open_uploader
from vkrt.core.weights cimport (
    allocate_weights, close_weights, open_weights, pack_weights, write_weights,
)


cdef int open_session(Device* device, const Records* records, const File* file, bint padded,
                      const int64_t* type_bits, const ReaderOptions* reading, Session* session,
                      Error* error) noexcept nogil:
    memset(session, 0, sizeof(session[0]))
    session.device, session.records, session.file = device, records, file
    session.padded, session.type_bits, session.keep_limit = padded, type_bits, reading.keep_limit
    session.files[0] = file
    return (open_allocator(device, &session.allocator, error)
            or open_allocator(device, &session.spilled, error)
            or open_reader(session.files, 1, reading, &session.reader, error)
            or open_kernels(device, records, file.data, &session.kernels, error))


cdef void close_session(Session* session) noexcept nogil:
    close_kernels(&session.kernels)
    close_reader(&session.reader)
    close_allocator(&session.spilled)
    close_allocator(&session.allocator)


cdef const ExecutionPlanRow* plan_at(const Records* records, const CompiledMethodRow* row,
                                     int64_t shape) noexcept nogil:
    if shape == 0:
        return &row.largest.executable.execution
    return &records.compiled_shape[row.others.first + shape - 1].execution


cdef int refuse_kernels(const Records* records, const CompiledMethodRow* row,
                        Error* error) noexcept nogil:
    cdef int64_t i
    for i in range(row.others.count + 1):
        if refuse_host_kernels(records, plan_at(records, row, i), error):
            return error.status
    return VKRT_OK


cdef const ExecutionPlanRow* plan_of(const Method* method) noexcept nogil:
    return plan_at(method.session.records, method.row, method.shape)


cdef int open_shape(Method* method, int64_t shape, Execution* execution,
                    Error* error) noexcept nogil:
    cdef Session* session = method.session
    cdef const ExecutionPlanRow* plan = plan_at(session.records, method.row, shape)
    cdef Kernel* kernels = NULL
    if get_kernels(&session.kernels, &plan.kernels, &kernels, error):
        free(kernels)
        return error.status
    return open_execution(session.device, session.records, plan, kernels, session.padded, execution,
                          error)


cdef int bind_shape(Method* method, Execution* execution, const Handles* state,
                    const IOBinding* binding, Error* error) noexcept nogil:
    cdef const Handles* others[2]
    cdef Block** memory = NULL
    cdef int status = find_blocks(&method.arena, &execution.plan.blocks, &memory, error)
    others[0], others[1] = &method.kept, state
    if status == VKRT_OK:
        status = bind_execution(execution, others, 1 if state == NULL else 2, memory, binding,
                                error)
    if status == VKRT_OK and method.streamer.has_thread:
        execution.streamer = &method.streamer
    if status == VKRT_OK and has_row_reads(execution.records, execution.plan):
        execution.reader = &method.row_reader
    free(memory)
    return status


cdef void share_weights(Method* method, const SharedUseRow* use,
                        const Method* shared) noexcept nogil:
    cdef const int64_t* storage = method.session.records.integer + use.storages.first
    cdef int64_t i
    for i in range(use.storages.count):
        share_handle(&method.kept, storage[i], &shared.kept, i)


cdef int open_all(Method* method, SharedWeights** shared, Error* error) noexcept nogil:
    """Everything that allocates no memory."""
    cdef Session* session = method.session
    cdef const Records* records = session.records
    cdef const ExecutionPlanRow* plan = plan_at(records, method.row, 0)
    cdef int64_t i
    method.executions = <Execution*>calloc(<size_t>method.row.others.count + 1, sizeof(Execution))
    if method.executions == NULL:
        return fail(error, VKRT_ERROR_MEMORY, b"a method: the host is out of memory")
    if open_handles(session.device, records, &plan.storages, session.padded, &method.kept, error):
        return error.status
    for i in range(method.row.shared.count):
        share_weights(method, records.shared_use + method.row.shared.first + i, &shared[i].method)
    if (open_weights(&session.allocator, records, &method.row.largest.executable.weights,
                     session.file, &method.kept, session.type_bits, &method.weights, error)
            or open_states(&session.allocator, records, &method.row.largest.executable.states,
                           &method.kept, session.type_bits, &method.states, error)
            or plan_blocks(&session.allocator, &session.spilled, records, &plan.blocks,
                           session.type_bits, &method.arena, error)):
        return error.status
    for i in range(method.row.others.count + 1):
        if open_shape(method, i, &method.executions[i], error):
            return error.status
    return VKRT_OK


cdef int allocate_rest(Method* method, Error* error) noexcept nogil:
    """The memory of everything but weights."""
    return allocate_states(&method.states, error) or allocate_all(&method.arena, error)


cdef int load_weights(Method* method, Error* error) noexcept nogil:
    """Brings every weight to its place, in the order of the file."""
    cdef Session* session = method.session
    cdef const PrepackPlanRow* prepack = &method.weights.plan.prepack
    cdef Kernel* kernels = NULL
    cdef Loading loading = loading_by(&session.reader)
    cdef int status = VKRT_OK
    if (get_kernels(&session.kernels, &prepack.kernels, &kernels, error)
            or method.weights.plan.is_eager and allocate_weights(&method.weights, error)
            or write_weights(&method.weights, &loading, UINT64_MAX, error)
            or pack_weights(&method.weights, session.records, prepack, kernels, &loading, error)):
        status = error.status
    free(kernels)
    return status


cdef bint reads_rows(const Method* method) noexcept nogil:
    """Whether a run at one of its shapes does."""
    cdef const Records* records = method.session.records
    cdef int64_t i
    for i in range(method.row.others.count + 1):
        if has_row_reads(records, plan_at(records, method.row, i)):
            return True
    return False


cdef int open_run_reader(const Session* session, Reader* reader, Error* error) noexcept nogil:
    """Opens a reader for what is read in every run."""
    cdef ReaderOptions options
    memset(&options, 0, sizeof(options))
    # The processors may be those that the device computes on, and mapping the file's pages and
    # giving them back takes nearly twice the time of the system's own copy.
    options.strategy, options.window = STRATEGY_PREAD, DEFAULT_WINDOW
    options.keep_limit = session.keep_limit
    return open_reader(session.files, 1, &options, reader, error)


cdef int open_stream(Method* method, Error* error) noexcept nogil:
    """Opens what reads rows, and starts what brings streamed weights; nothing where there are
    none."""
    cdef Session* session = method.session
    cdef const WeightPlanRow* plan = &method.row.largest.executable.weights
    if reads_rows(method) and open_run_reader(session, &method.row_reader, error):
        return error.status
    if not plan.reloads.is_there:
        return VKRT_OK
    return (open_run_reader(session, &method.stream_reader, error)
            or open_uploader(&session.allocator, &method.stream_reader, plan, &method.kept,
                             &method.streamer.uploader, error)
            or open_streamer(plan, &method.kept, &method.streamer, error))


cdef int report_part(OnPart on_part, void* data, const char* part, Error* error) noexcept nogil:
    if on_part != NULL and on_part(data, part):
        return fail(error, VKRT_ERROR_CANCELLED, b"the host has ended the load after: %s", part)
    return VKRT_OK


cdef int load_method(Session* session, const CompiledMethodRow* row, SharedWeights** shared,
                     OnPart on_part, void* data, Method* method, Error* error) noexcept nogil:
    # Order "eager": everything is allocated before anything is packed.
    cdef bint eager = row.largest.executable.weights.is_eager
    cdef Loading loading = loading_by(&session.reader)
    cdef int64_t i
    memset(method, 0, sizeof(method[0]))
    method.session, method.row = session, row
    if (open_all(method, shared, error) or report_part(on_part, data, b"pipelines", error)
            or eager and allocate_rest(method, error)
            or load_weights(method, error) or allocate_weights(&method.weights, error)
            or report_part(on_part, data, b"weights", error)
            or not eager and allocate_rest(method, error)
            or reset_states(&method.states, &loading, error)
            # The thread begins with what the first run needs first.
            or open_stream(method, error)):
        return error.status
    for i in range(row.others.count + 1):
        if bind_shape(method, &method.executions[i], NULL, NULL, error):
            return error.status
    return report_part(on_part, data, b"allocate and record", error)


cdef void close_method(Method* method) noexcept nogil:
    cdef int64_t i
    if method.executions != NULL:
        for i in range(method.row.others.count + 1):
            close_execution(&method.executions[i])
    free(method.executions)
    close_streamer(&method.streamer)
    close_reader(&method.stream_reader)
    close_reader(&method.row_reader)
    close_handles(&method.kept)
    free_blocks(&method.arena)
    close_states(&method.states)
    close_weights(&method.weights)
    memset(method, 0, sizeof(method[0]))


cdef const HostArrayRow* array_at(const Method* method, const Rows* arrays,
                                  int64_t number) noexcept nogil:
    cdef const MaybeHostArrayRow* row = (method.session.records.maybe_host_array + arrays.first
                                         + number)
    return &row.value if row.is_there else NULL


cdef const HostArrayRow* output_at(const Method* method, int64_t number) noexcept nogil:
    return array_at(method, &plan_of(method).outputs, number)


cdef size_t array_bytes(const Method* method, const HostArrayRow* array) noexcept nogil:
    """Bytes of the elements, without padding."""
    return <size_t>(product_of(method.session.records, &array.sizes) * itemsize_of(array.dtype))


cdef int use_shape(Method* method, int64_t number, Error* error) noexcept nogil:
    if not 0 <= number <= method.row.others.count:
        return fail(error, VKRT_ERROR_INPUT, b"shape %lld: expected one of %lld",
                    <long long>number, <long long>method.row.others.count + 1)
    method.shape = number
    return VKRT_OK


cdef int wait_for_shapes(Method* method, Error* error) noexcept nogil:
    """Waits for a run that was left, at any shape: they share their memory."""
    cdef int64_t i
    for i in range(method.row.others.count + 1):
        if wait_for_execution(&method.executions[i], NULL, NULL, error):
            return error.status
    return VKRT_OK


cdef int write_input(Method* method, int64_t number, const void* data, size_t nbytes,
                     Error* error) noexcept nogil:
    cdef const HostArrayRow* array = array_at(method, &plan_of(method).inputs, number)
    cdef const CompiledShapeRow* other = (method.session.records.compiled_shape
                                          + method.row.others.first + method.shape - 1)
    cdef const Rows* limits = &method.row.largest.limits
    cdef const Rows* index_limits = &method.row.largest.index_limits
    if array == NULL:
        return VKRT_OK
    if method.shape > 0:
        limits, index_limits = &other.limits, &other.index_limits
    if nbytes != array_bytes(method, array):
        return fail(error, VKRT_ERROR_INPUT, b"input %lld: expected %llu bytes, got %llu",
                    <long long>number, <unsigned long long>array_bytes(method, array),
                    <unsigned long long>nbytes)
    return (check_elements(method.session.records, limits, index_limits, number, array.dtype, data,
                           nbytes, error)
            or wait_for_shapes(method, error)
            or copy_to_array(&method.executions[method.shape].handles, array, data, nbytes, error))


cdef int read_output(Method* method, int64_t number, void* data, size_t nbytes,
                     Error* error) noexcept nogil:
    cdef const HostArrayRow* array = output_at(method, number)
    if array == NULL:
        return VKRT_OK
    if nbytes != array_bytes(method, array):
        return fail(error, VKRT_ERROR_INPUT, b"output %lld: expected %llu bytes, got %llu",
                    <long long>number, <unsigned long long>array_bytes(method, array),
                    <unsigned long long>nbytes)
    return copy_from_range(&method.executions[method.shape].handles, &array.range, data, nbytes,
                           error)


cdef Execution* execution_of(Method* method) noexcept nogil:
    return &method.executions[method.shape]
