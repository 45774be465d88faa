# cython: cdivision=True

from libc.stdint cimport UINT64_MAX, int32_t, int64_t, uint32_t, uint64_t
from libc.stdio cimport snprintf
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from vkrt.capi.compiled_info cimport Value, bound_of, describe_value, name_value, value_at
from vkrt.capi.compiled_inputs cimport (
    LABEL_BYTES, SIZES_BYTES, check_input_count, label_of, put_sizes, wrong_dimension,
)
from vkrt.capi.compiled_run cimport check_output_count, output_at
from vkrt.capi.failure cimport failed, refuse
from vkrt.capi.table cimport VKRT_MAX_RANK, VKRT_OK, vkrt_buffer, vkrt_semaphore
from vkrt.core.batch cimport free_semaphore_list, make_semaphore_list, put_semaphore
from vkrt.core.dtypes cimport itemsize_of
from vkrt.core.elements cimport is_converted
from vkrt.core.error cimport VKRT_ERROR_INPUT, VKRT_ERROR_MEMORY, Error
from vkrt.core.grouped cimport GROUPED, grouped
from vkrt.core.records cimport ANY_TENSOR, LimitRow, Rows


# What the caller gives

cdef int take_buffers(vkrt_failure* failure, const vkrt_buffer* given, size_t count,
                      const char* name, ExternalBuffer** taken) noexcept nogil:
    cdef size_t i
    taken[0] = <ExternalBuffer*>calloc(count + 1, sizeof(ExternalBuffer))
    if taken[0] == NULL:
        return refuse(failure, VKRT_ERROR_MEMORY, b"%s: the host is out of memory", name)
    if count and given == NULL:
        return refuse(failure, VKRT_ERROR_INPUT, b"%s: a null pointer", name)
    for i in range(count):
        if given[i].has_sizes and not 0 <= given[i].rank <= VKRT_MAX_RANK:
            return refuse(failure, VKRT_ERROR_INPUT, b"%s[%zu]: rank %d is not 0 to %d", name, i,
                          <int>given[i].rank, VKRT_MAX_RANK)
        if given[i].buffer == 0:
            return refuse(failure, VKRT_ERROR_INPUT, b"%s[%zu]: the handle is null", name, i)
        if given[i].nbytes == 0 or given[i].offset > UINT64_MAX - given[i].nbytes:
            return refuse(failure, VKRT_ERROR_INPUT, b"%s[%zu]: %llu bytes at %llu are no part of "
                          b"a buffer", name, i, <unsigned long long>given[i].nbytes,
                          <unsigned long long>given[i].offset)
        taken[0][i] = ExternalBuffer(given[i].buffer, given[i].offset, given[i].nbytes)
    return VKRT_OK


cdef int take_semaphores(vkrt_failure* failure, const Device* device, const vkrt_semaphore* given,
                         size_t count, const char* name, SemaphoreList* taken) noexcept nogil:
    cdef Error error
    cdef size_t i
    if count and given == NULL:
        return refuse(failure, VKRT_ERROR_INPUT, b"%s: a null pointer", name)
    if make_semaphore_list(<uint32_t>count, taken, &error):
        return failed(failure, &error)
    for i in range(count):
        if given[i].semaphore == 0:
            return refuse(failure, VKRT_ERROR_INPUT, b"%s[%zu]: the handle is null", name, i)
        if put_semaphore(device, taken, <uint32_t>i, given[i].semaphore,
                         &given[i].value if given[i].is_timeline else NULL, &error):
            return failed(failure, &error)
    return VKRT_OK


cdef int take_submission(vkrt_failure* failure, const Device* device, const vkrt_submission* given,
                         TakenSubmission* taken) noexcept nogil:
    memset(taken, 0, sizeof(taken[0]))
    taken.given = given
    taken.tensors = <vkrt_tensor*>calloc(given.input_count + 1, sizeof(vkrt_tensor))
    if taken.tensors == NULL:
        return refuse(failure, VKRT_ERROR_MEMORY, b"inputs: the host is out of memory")
    return (take_buffers(failure, given.inputs, given.input_count, b"inputs", &taken.inputs)
            or take_buffers(failure, given.outputs, given.output_count, b"outputs",
                            &taken.outputs)
            or take_semaphores(failure, device, given.waits, given.wait_count, b"waits",
                               &taken.waits)
            or take_semaphores(failure, device, given.signals, given.signal_count, b"signals",
                               &taken.signals))


cdef void free_submission(TakenSubmission* taken) noexcept nogil:
    free(taken.inputs)
    free(taken.outputs)
    free(taken.tensors)
    free_semaphore_list(&taken.waits)
    free_semaphore_list(&taken.signals)


# What the method takes

cdef int check_kind(const Call* call, const Value* value, const char* label) noexcept nogil:
    cdef char[SIZES_BYTES] text
    if (value.member.which == ANY_TENSOR and not is_converted(value.dtype)
            and value.rank <= VKRT_MAX_RANK):
        return VKRT_OK
    return refuse(call.failure, VKRT_ERROR_INPUT, b"%s: expected %s, which a VkBuffer cannot hold: "
                  b"numbers and tensors of 64-bit or int16 elements are passed as memory, to "
                  b"vkrt_run",
                  label, describe_value(value, text, sizeof(text)))


cdef int fail_sizes(const Call* call, const Value* value, const vkrt_buffer* buffer,
                    const char* wrong, const char* label) noexcept nogil:
    cdef char[SIZES_BYTES] text, sizes
    put_sizes(buffer.sizes, buffer.rank, sizes, sizeof(sizes))
    return refuse(call.failure, VKRT_ERROR_INPUT, b"%s: expected %s, got a VkBuffer of sizes %s%s",
                  label, describe_value(value, text, sizeof(text)), sizes, wrong)


cdef bint decides_sizes(const Call* call, size_t number) noexcept nogil:
    """Whether a run depends on elements of an input that have to be known before, at any shape."""
    cdef const Rows* limits
    cdef const LimitRow* limit
    cdef int64_t i, shape
    for shape in range(call.method.row.others.count + 1):
        limits = &call.method.row.largest.limits
        if shape > 0:
            limits = &call.records.compiled_shape[call.method.row.others.first + shape - 1].limits
        for i in range(limits.count):
            limit = call.records.limit + limits.first + i
            if limit.read.input == <int64_t>number:
                return True
    return False


cdef int check_input_buffer(const Call* call, size_t number, const vkrt_buffer* buffer,
                            vkrt_tensor* tensor) noexcept nogil:
    cdef Value value = value_at(call.method, False, <int64_t>number)
    cdef char[LABEL_BYTES] label
    cdef char[SIZES_BYTES] text
    cdef char[120] wrong
    cdef char[GROUPED] expected, had
    cdef uint64_t nbytes
    cdef int64_t dim
    if check_kind(call, &value, label_of(call, number, label)):
        return call.failure.code
    wrong[0] = 0
    if buffer.has_sizes and (buffer.rank != value.rank or wrong_dimension(
            &value, buffer.sizes, wrong, sizeof(wrong))[0] != 0):
        return fail_sizes(call, &value, buffer, wrong, label)
    tensor.dtype, tensor.rank = value.number, <int32_t>value.rank
    nbytes = <uint64_t>itemsize_of(value.dtype)
    for dim in range(value.rank):
        tensor.sizes[dim] = buffer.sizes[dim] if buffer.has_sizes else bound_of(&value, dim)
        nbytes *= <uint64_t>tensor.sizes[dim]
    if buffer.nbytes < nbytes:
        return refuse(call.failure, VKRT_ERROR_INPUT, b"%s: expected a VkBuffer with %s bytes for "
                      b"%s, got %s", label, grouped(nbytes, expected),
                      describe_value(&value, text, sizeof(text)), grouped(buffer.nbytes, had))
    if decides_sizes(call, number):
        return refuse(call.failure, VKRT_ERROR_INPUT, b"%s: what it holds decides sizes or places, "
                      b"which vkrt has to know before it runs; pass memory, to vkrt_run", label)
    return VKRT_OK


cdef int check_input_buffers(const Call* call, TakenSubmission* taken) noexcept nogil:
    cdef size_t number
    if check_input_count(call):
        return call.failure.code
    for number in range(call.input_count):
        if check_input_buffer(call, number, taken.given.inputs + number, taken.tensors + number):
            return call.failure.code
    return VKRT_OK


cdef int check_output_buffers(const Call* call, const TakenSubmission* taken) noexcept nogil:
    cdef char[LABEL_BYTES] label
    cdef char[100] name
    cdef const vkrt_buffer* buffer
    cdef const int64_t* sizes
    cdef Value value
    cdef size_t number
    cdef int64_t dim
    cdef bint fits
    if check_output_count(call):
        return call.failure.code
    for number in range(call.output_count):
        buffer = taken.given.outputs + number
        value = output_at(call, number)
        snprintf(label, sizeof(label), b"out %zu '%s'", number,
                 name_value(call.method, True, <int64_t>number, name, sizeof(name)))
        if check_kind(call, &value, label):
            return call.failure.code
        if not buffer.has_sizes:
            continue
        sizes = call.records.integer + call.records.tensor[value.member.row].sizes.first
        fits = buffer.rank == value.rank
        for dim in range(value.rank):
            fits = fits and buffer.sizes[dim] == sizes[dim]
        if not fits:
            return fail_sizes(call, &value, buffer, b"", label)
    return VKRT_OK
