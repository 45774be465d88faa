from libc.string cimport memset

from vkrt.core.check cimport product_of
from vkrt.core.check_commands cimport is_branch
from vkrt.core.dtypes cimport itemsize_of
from vkrt.core.error cimport VKRT_ERROR_UNSUPPORTED, VKRT_OK, fail
from vkrt.core.handles cimport flush_range, host_address, invalidate_range
from vkrt.core.records cimport DTYPE_FLOAT16, DTYPE_FLOAT32, HostArrayRow, Member, Rows
from vkrt.core.row_reads cimport read_rows
from vkrt.core.system cimport now


cdef double seconds_now() noexcept nogil:
    return <double>now() * 1e-9


cdef int fail_without_kernel(const Records* records, const HostKernelRow* kernel,
                             Error* error) noexcept nogil:
    return fail(error, VKRT_ERROR_UNSUPPORTED, b"%.*s runs on the host, which has no kernels here; "
                b"load the .pte file through Python", <int>min(kernel.name.count, <int64_t>80),
                records.texts + kernel.name.first)


cdef int refuse_host_kernels(const Records* records, const ExecutionPlanRow* plan,
                             Error* error) noexcept nogil:
    cdef const HostKernelRow* kernel
    cdef int64_t i
    for i in range(plan.submissions.first, plan.submissions.first + plan.submissions.count):
        kernel = &records.submission_record[i].host.value
        if (records.submission_record[i].host.is_there and not kernel.table.is_there
                and not is_branch(records, kernel)):
            return fail_without_kernel(records, kernel, error)
    return VKRT_OK


cdef bint is_nonzero(const unsigned char* element, int64_t itemsize,
                     bint signed_zero) noexcept nogil:
    cdef int64_t i
    for i in range(itemsize):
        # Of floats, -0.0 is zero too.
        if element[i] & (0x7f if signed_zero and i == itemsize - 1 else 0xff):
            return True
    return False


cdef bint read_condition(const Handles* handles, const HostArrayRow* array) noexcept nogil:
    """Whether no element of an array, which the host sees, is zero."""
    cdef const unsigned char* data = <const unsigned char*>host_address(handles, &array.range)
    cdef int64_t itemsize = itemsize_of(array.dtype)
    cdef bint is_float = array.dtype in (DTYPE_FLOAT16, DTYPE_FLOAT32)
    cdef int64_t i
    for i in range(product_of(handles.records, &array.sizes)):
        if not is_nonzero(data + i * itemsize, itemsize, is_float):
            return False
    return True


cdef bint is_skipping(const Handles* handles, const HostKernelRow* kernel) noexcept nogil:
    """Pairs of an array and what it has to be: one that is not so skips what is behind."""
    cdef const Member* args = handles.records.any + kernel.args.first
    cdef const Member* pair
    cdef bint holds
    cdef int64_t i
    for i in range(kernel.args.count):
        pair = handles.records.any + handles.records.any_rows[args[i].row].first
        holds = read_condition(handles, handles.records.host_array + kernel.reads.first
                               + handles.records.read_argument[pair[0].row].read)
        if holds != (handles.records.flag[pair[1].row] != 0):
            return True
    return False


cdef int invalidate_arrays(const Handles* handles, const Rows* arrays, Error* error) noexcept nogil:
    cdef int64_t i
    for i in range(arrays.first, arrays.first + arrays.count):
        if invalidate_range(handles, &handles.records.host_array[i].range, error):
            return error.status
    return VKRT_OK


cdef int flush_arrays(const Handles* handles, const Rows* arrays, Error* error) noexcept nogil:
    """The rest of the last texel is padding, which kernels take to be zero; others have used the
    arena before."""
    cdef const HostArrayRow* array
    cdef int64_t i, nbytes
    for i in range(arrays.first, arrays.first + arrays.count):
        array = handles.records.host_array + i
        nbytes = product_of(handles.records, &array.sizes) * itemsize_of(array.dtype)
        memset(host_address(handles, &array.range) + nbytes, 0,
               <size_t>(array.range.nbytes - nbytes))
        if flush_range(handles, &array.range, error):
            return error.status
    return VKRT_OK


cdef int call_host(const Host* host, const Records* records, const HostKernelRow* kernel,
                   int64_t number, bint skipped, Error* error) noexcept nogil:
    cdef int status
    if host.run_kernel == NULL:
        return fail_without_kernel(records, kernel, error)
    error.status = VKRT_OK
    status = host.run_kernel(host.kernel_data, number, skipped, error)
    if status == VKRT_OK or error.status == status:
        return status
    return fail(error, status, b"%.*s has failed on the host",
                <int>min(kernel.name.count, <int64_t>80), records.texts + kernel.name.first)


cdef int run_or_skip(const Host* host, Reader* reader, const Handles* handles,
                     const HostKernelRow* kernel, int64_t number, bint* skipping,
                     Error* error) noexcept nogil:
    cdef bint branch = is_branch(handles.records, kernel)
    if skipping[0] and kernel.table.is_there:
        return VKRT_OK
    if skipping[0] and not branch:
        return call_host(host, handles.records, kernel, number, True, error)
    if (invalidate_arrays(handles, &kernel.reads, error)
            or invalidate_arrays(handles, &kernel.writes, error)):
        return error.status
    if branch:
        skipping[0] = is_skipping(handles, kernel)
        return VKRT_OK
    return ((read_rows(reader, handles, kernel, host.poll, host.poll_data, error)
             if kernel.table.is_there
             else call_host(host, handles.records, kernel, number, False, error))
            or flush_arrays(handles, &kernel.writes, error))


cdef int run_host_kernel(const Host* host, Reader* reader, const Handles* handles,
                         const HostKernelRow* kernel, int64_t number, bint* skipping,
                         Error* error) noexcept nogil:
    cdef double start = seconds_now()
    cdef int status = run_or_skip(host, reader, handles, kernel, number, skipping, error)
    cdef HostClock* clock = host.clock
    if clock != NULL and clock.count < clock.room:
        clock.times[clock.count] = StepTime(start, seconds_now() - start)
        clock.count += 1
    return status
