# cython: language_level=3

from libc.stdlib cimport calloc, free
from libc.string cimport memset

from vkrt.core.allocator cimport close_allocator, open_allocator
from vkrt.core.blocks cimport allocate_all, free_blocks, plan_blocks
from vkrt.core.arguments cimport check_elements
from vkrt.core.check cimport product_of
from vkrt.core.dtypes cimport itemsize_of
from vkrt.core.error cimport VKRT_ERROR_INPUT, VKRT_ERROR_MEMORY, VKRT_OK, fail
from vkrt.core.execution cimport (
    bind_execution, close_execution, open_execution, run_execution,
)
from vkrt.core.handles cimport close_handles, copy_from_range, copy_to_range, open_handles
from vkrt.core.kernels cimport close_kernels, open_kernels
from vkrt.core.reader cimport DEFAULT_WINDOW, ReaderOptions, close_reader, open_reader
from vkrt.core.records cimport CompiledShapeRow, ExecutionPlanRow, MaybeHostArrayRow, Rows
from vkrt.core.states cimport allocate_states, close_states, open_states, reset_states
from vkrt.core.weights cimport close_weights, load_weights, open_weights


cdef int open_session(Session* session, Device* device, const Records* records, const File* file,
                      bint odd, const int64_t* type_bits, Error* error) noexcept nogil:
    cdef ReaderOptions options
    memset(session, 0, sizeof(session[0]))
    memset(&options, 0, sizeof(options))
    options.window = DEFAULT_WINDOW
    session.device, session.records, session.file = device, records, file
    session.odd, session.type_bits = odd, type_bits
    session.files[0] = file
    if (open_allocator(&session.allocator, device, error)
            or open_reader(session.files, 1, &options, &session.reader, error)
            or open_kernels(&session.kernels, device, records, file.data, error)):
        return error.status
    return VKRT_OK


cdef void close_session(Session* session) noexcept nogil:
    close_kernels(&session.kernels)
    close_reader(&session.reader)
    if session.allocator.device != NULL:
        close_allocator(&session.allocator)


cdef const ExecutionPlanRow* plan_at(const Method* method, int64_t shape) noexcept nogil:
    if shape == 0:
        return &method.row.largest.executable.execution
    return &method.session.records.compiled_shape[method.row.others.first + shape - 1].execution


cdef int open_all(Method* method, Error* error) noexcept nogil:
    """Everything that allocates no memory."""
    cdef Session* session = method.session
    cdef const Records* records = session.records
    cdef const ExecutionPlanRow* plan = plan_at(method, 0)
    cdef int64_t i
    method.executions = <Execution*>calloc(<size_t>method.row.others.count + 1, sizeof(Execution))
    if method.executions == NULL:
        return fail(error, VKRT_ERROR_MEMORY, b"a method: the host is out of memory")
    if (open_handles(&method.kept, session.device, records, &plan.storages, session.odd, error)
            or open_weights(&method.weights, &session.allocator, records,
                            &method.row.largest.executable.weights, session.file, &method.kept,
                            session.type_bits, error)
            or open_states(&method.states, &session.allocator, records,
                           &method.row.largest.executable.states, &method.kept, session.type_bits,
                           error)
            or plan_blocks(&method.arena, &session.allocator, records, &plan.blocks,
                           session.type_bits, error)):
        return error.status
    for i in range(method.row.others.count + 1):
        if open_execution(&method.executions[i], records, plan_at(method, i), &session.kernels,
                          session.odd, error):
            return error.status
    return VKRT_OK


cdef int allocate_rest(Method* method, Error* error) noexcept nogil:
    """The memory of everything but weights."""
    if allocate_states(&method.states, error):
        return error.status
    return allocate_all(&method.arena, error)


cdef int load_method(Method* method, Session* session, const CompiledMethodRow* row,
                     Error* error) noexcept nogil:
    # Order "eager": everything is allocated before anything is packed.
    cdef bint eager = row.largest.executable.weights.is_eager
    cdef int64_t i
    memset(method, 0, sizeof(method[0]))
    method.session, method.row = session, row
    if open_all(method, error) or eager and allocate_rest(method, error):
        return error.status
    if (load_weights(&method.weights, &session.kernels, &session.reader, error)
            or not eager and allocate_rest(method, error)
            or reset_states(&method.states, &session.reader, error)):
        return error.status
    for i in range(row.others.count + 1):
        if bind_execution(&method.executions[i], &method.kept, &method.arena, error):
            return error.status
    return VKRT_OK


cdef void close_method(Method* method) noexcept nogil:
    cdef int64_t i
    if method.executions != NULL:
        for i in range(method.row.others.count + 1):
            close_execution(&method.executions[i])
    free(method.executions)
    close_handles(&method.kept)
    if method.arena.records != NULL:
        free_blocks(&method.arena)
    close_states(&method.states)
    close_weights(&method.weights)
    memset(method, 0, sizeof(method[0]))


cdef const HostArrayRow* array_at(const Method* method, const Rows* arrays,
                                  int64_t number) noexcept nogil:
    cdef const MaybeHostArrayRow* row = (method.session.records.maybe_host_array + arrays.first
                                         + number)
    return &row.value if row.is_there else NULL


cdef const HostArrayRow* input_at(const Method* method, int64_t number) noexcept nogil:
    return array_at(method, &plan_at(method, method.shape).inputs, number)


cdef const HostArrayRow* output_at(const Method* method, int64_t number) noexcept nogil:
    return array_at(method, &plan_at(method, method.shape).outputs, number)


cdef size_t array_bytes(const Method* method, const HostArrayRow* array) noexcept nogil:
    """Bytes of the elements, without padding."""
    return <size_t>(product_of(method.session.records, &array.sizes) * itemsize_of(array.dtype))


cdef int use_shape(Method* method, int64_t number, Error* error) noexcept nogil:
    if not 0 <= number <= method.row.others.count:
        return fail(error, VKRT_ERROR_INPUT, b"shape %lld: expected one of %lld",
                    <long long>number, <long long>method.row.others.count + 1)
    method.shape = number
    return VKRT_OK


cdef int write_input(Method* method, int64_t number, const void* data, size_t nbytes,
                     Error* error) noexcept nogil:
    cdef const HostArrayRow* array = input_at(method, number)
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
    if check_elements(method.session.records, limits, index_limits, number, array.dtype, data,
                      nbytes, error):
        return error.status
    return copy_to_range(&method.executions[method.shape].handles, &array.range, data, nbytes,
                         error)


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


cdef int run_method(Method* method, Poll poll, void* data, Error* error) noexcept nogil:
    return run_execution(&method.executions[method.shape], poll, data, error)
