# cython: cdivision=True

from libc.stdint cimport int32_t, int64_t
from libc.stdio cimport snprintf
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from vkrt.capi.compiled_handles cimport find_state
from vkrt.capi.compiled_info cimport (
    describe_values, dtype_name, value_at, value_count, value_of,
)
from vkrt.capi.compiled_inputs cimport check_inputs, find_shape
from vkrt.capi.failure cimport failed, refuse
from vkrt.capi.table cimport VKRT_MAX_RANK, VKRT_OK
from vkrt.core.check cimport product_of
from vkrt.core.dtypes cimport itemsize_of
from vkrt.core.elements cimport is_converted, elements_to_device, elements_to_host
from vkrt.core.error cimport (
    VKRT_ERROR_CAPACITY, VKRT_ERROR_FORMAT, VKRT_ERROR_INPUT, VKRT_ERROR_MEMORY,
    VKRT_ERROR_UNSUPPORTED, Error,
)
from vkrt.core.loaded_program cimport MethodState, run_loaded
from vkrt.core.method cimport read_output, write_input
from vkrt.core.method_state cimport use_state
from vkrt.core.records cimport ANY_FLAG, ANY_INTEGER, ANY_TENSOR, Rows
from vkrt.core.threads cimport pthread_mutex_lock, pthread_mutex_unlock

cdef enum:
    TEXT_BYTES = 1200


# Outputs

cdef const Rows* outputs_at(const Call* call) noexcept nogil:
    if call.method.constants != NULL:
        return &call.method.constants.values
    if call.shape == 0:
        return &call.method.row.largest.outputs
    return &call.records.compiled_shape[call.method.row.others.first + call.shape - 1].outputs


cdef Value output_at(const Call* call, size_t number) noexcept nogil:
    return value_of(call.records, call.records.any + outputs_at(call).first + number)


cdef const Rows* sizes_of(const Value* value) noexcept nogil:
    return &value.records.tensor[value.member.row].sizes


cdef size_t nbytes_of(const Value* value) noexcept nogil:
    cdef size_t nbytes = <size_t>itemsize_of(value.dtype)
    if value.member.which == ANY_TENSOR:
        nbytes *= <size_t>product_of(value.records, sizes_of(value))
    return nbytes


cdef int describe_output(const Call* call, size_t number) noexcept nogil:
    """Tells the caller what an output is; its `nbytes` becomes that of the tensor."""
    cdef vkrt_tensor* tensor = &call.outputs[number]
    cdef Value value = output_at(call, number)
    cdef int64_t dim
    if value.number == 0 or value.rank > VKRT_MAX_RANK:
        return refuse(call.failure, VKRT_ERROR_UNSUPPORTED, b"output %zu: dtype %s of %lld "
                      b"dimensions cannot be told in vkrt.h", number, dtype_name(value.dtype),
                      <long long>value.rank)
    tensor.dtype, tensor.rank = value.number, <int32_t>value.rank
    tensor.nbytes = nbytes_of(&value)
    for dim in range(value.rank):
        tensor.sizes[dim] = value.records.integer[sizes_of(&value).first + dim]
    return VKRT_OK


cdef int check_output_count(const Call* call) noexcept nogil:
    cdef char[TEXT_BYTES] text
    cdef int64_t wanted = value_count(call.method, True)
    # A file may say something else for another shape.
    if outputs_at(call).count != wanted:
        return refuse(call.failure, VKRT_ERROR_FORMAT, b"a shape has %lld outputs, and the method "
                      b"%lld", <long long>outputs_at(call).count, <long long>wanted)
    if call.output_count == <size_t>wanted:
        return VKRT_OK
    return refuse(call.failure, VKRT_ERROR_INPUT, b"method '%.*s': expected %lld outputs (%s), got "
                  b"%zu", <int>min(call.method.name.count, <int64_t>100),
                  call.records.texts + call.method.name.first, <long long>wanted,
                  describe_values(call.method, True, text, sizeof(text)), call.output_count)


cdef int check_outputs(const Call* call) noexcept nogil:
    """Describes the outputs, and makes sure that there is room for all of them."""
    cdef char[TEXT_BYTES] text
    cdef size_t used = 0, number, room
    text[0] = 0
    for number in range(min(call.output_count, <size_t>outputs_at(call).count)):
        room = call.outputs[number].nbytes if call.outputs[number].data != NULL else 0
        if describe_output(call, number):
            return call.failure.code
        if room < call.outputs[number].nbytes and used < sizeof(text) - 1:
            used += snprintf(text + used, sizeof(text) - used,
                             b"%soutput %zu has %zu bytes, its memory %zu", b"; " if used else b"",
                             number, call.outputs[number].nbytes, room)
    if check_output_count(call):
        return call.failure.code
    return refuse(call.failure, VKRT_ERROR_CAPACITY, b"%s", text) if used else VKRT_OK


# Between the caller's memory and the device

cdef int write_converted(const Call* call, size_t number, int64_t dtype) noexcept nogil:
    cdef const vkrt_tensor* tensor = &call.inputs[number]
    cdef size_t count = tensor.nbytes // itemsize_of(dtype) if tensor.data != NULL else 0
    cdef void* elements = malloc(4 * count + 1)
    cdef Error error
    cdef int status
    if elements == NULL:
        return refuse(call.failure, VKRT_ERROR_MEMORY, b"input %zu: the host is out of memory",
                      number)
    status = (elements_to_device(dtype, tensor.data, elements, count, <int64_t>number, &error)
              or write_input(&call.method.method, <int64_t>number, elements, 4 * count, &error))
    free(elements)
    return status if status == VKRT_OK else failed(call.failure, &error)


cdef int write_inputs(const Call* call) noexcept nogil:
    cdef Value value
    cdef Error error
    cdef size_t number
    for number in range(call.input_count):
        value = value_at(call.method, False, <int64_t>number)
        if value.member.which != ANY_TENSOR:
            continue
        if is_converted(value.dtype):
            if write_converted(call, number, value.dtype):
                return call.failure.code
        elif write_input(&call.method.method, <int64_t>number, call.inputs[number].data,
                         call.inputs[number].nbytes if call.inputs[number].data != NULL else 0,
                         &error):
            return failed(call.failure, &error)
    return VKRT_OK


cdef int read_converted(const Call* call, size_t number, const Value* value) noexcept nogil:
    cdef size_t count = nbytes_of(value) // itemsize_of(value.dtype)
    cdef void* elements = malloc(4 * count + 1)
    cdef Error error
    if elements == NULL:
        return refuse(call.failure, VKRT_ERROR_MEMORY, b"output %zu: the host is out of memory",
                      number)
    if read_output(&call.method.method, <int64_t>number, elements, 4 * count, &error):
        free(elements)
        return failed(call.failure, &error)
    elements_to_host(value.dtype, elements, call.outputs[number].data, count)
    free(elements)
    return VKRT_OK


cdef void put_number(const Value* value, char* place) noexcept nogil:
    cdef int64_t row = value.member.row
    if value.member.which == ANY_FLAG:
        place[0] = value.records.flag[row] != 0
    elif value.member.which == ANY_INTEGER:
        memcpy(place, &value.records.integer[row], 8)
    else:
        memcpy(place, &value.records.number[row], 8)


cdef int read_outputs(const Call* call) noexcept nogil:
    cdef Value value
    cdef Error error
    cdef size_t number
    for number in range(call.output_count):
        value = output_at(call, number)
        if value.member.which != ANY_TENSOR:
            put_number(&value, <char*>call.outputs[number].data)
        elif is_converted(value.dtype):
            if read_converted(call, number, &value):
                return call.failure.code
        elif read_output(&call.method.method, <int64_t>number, call.outputs[number].data,
                         nbytes_of(&value), &error):
            return failed(call.failure, &error)
    return VKRT_OK


cdef int run_locked(Call* call, size_t handle) noexcept nogil:
    """A run of checked inputs, by the only thread that uses the method."""
    cdef MethodState* state
    cdef Error error
    if find_state(call.failure, call.method, handle, &state):
        return call.failure.code
    if use_state(call.method, state, call.shape, &error):
        return failed(call.failure, &error)
    if check_outputs(call) or write_inputs(call):
        return call.failure.code
    if run_loaded(call.method, state, &error):
        return failed(call.failure, &error)
    return read_outputs(call)


cdef int run_tensors(vkrt_failure* failure, ProgramMethod* method, size_t state,
                     const vkrt_tensor* inputs, size_t input_number, vkrt_tensor* outputs,
                     size_t output_number) noexcept nogil:
    cdef Call call = Call(failure, method, &method.program.program.records, inputs, input_number,
                          outputs, output_number, 0)
    cdef int status
    if check_inputs(&call):
        return failure.code
    if method.constants != NULL:  # it only returns numbers
        return check_outputs(&call) or read_outputs(&call)
    if find_shape(&call):
        return failure.code
    pthread_mutex_lock(&method.lock)
    status = run_locked(&call, state)
    pthread_mutex_unlock(&method.lock)
    return status
