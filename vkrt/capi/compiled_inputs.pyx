# cython: cdivision=True

from libc.stdint cimport int8_t, int16_t, int32_t, uint64_t
from libc.stdio cimport snprintf
from libc.string cimport memcpy

from vkrt.capi.compiled_info cimport (
    bound_of, describe_value, describe_values, dtype_name, dtype_of, is_dynamic, name_value,
    value_at, value_count,
)
from vkrt.capi.failure cimport refuse
from vkrt.capi.table cimport VKRT_MAX_RANK, VKRT_OK
from vkrt.core.checked cimport multiply_overflows
from vkrt.core.dtypes cimport itemsize_of
from vkrt.core.error cimport VKRT_ERROR_INPUT, VKRT_ERROR_UNSUPPORTED
from vkrt.core.records cimport (
    ANY_FLAG, ANY_INTEGER, ANY_TENSOR, DTYPE_BOOL, DTYPE_FLOAT32, DTYPE_FLOAT64, DTYPE_INT8,
    DTYPE_INT16, DTYPE_INT32, DTYPE_INT64, DTYPE_UINT8, DTYPE_UINT16, DTYPE_UINT32, DTYPE_UINT64,
    Member, Rows,
)

cdef enum:
    TEXT_BYTES = 1200


# Sizes and dtype that a tensor of the caller's has, also where it is as the method declares
cdef struct Given:
    int64_t dtype
    int32_t rank
    int64_t[VKRT_MAX_RANK] sizes


# Texts

cdef size_t put_sizes(const int64_t* sizes, int64_t rank, char* text, size_t size) noexcept nogil:
    cdef size_t used = snprintf(text, size, b"[")
    cdef int64_t i
    for i in range(rank):
        if used < size:
            used += snprintf(text + used, size - used, b"%s%lld", b"," if i else b"",
                             <long long>sizes[i])
    if used < size:
        used += snprintf(text + used, size - used, b"]")
    return min(used, size - 1)


cdef const char* label_of(const Call* call, size_t number, char* text) noexcept nogil:
    cdef char[100] name
    snprintf(text, LABEL_BYTES, b"input %zu '%s'", number,
             name_value(call.method, False, <int64_t>number, name, sizeof(name)))
    return text


cdef const char* wrong_dimension(const Value* value, const int64_t* sizes, char* text,
                                 size_t size) noexcept nogil:
    cdef int64_t dim, bound
    text[0] = 0
    for dim in range(value.rank):
        bound = bound_of(value, dim)
        if is_dynamic(value, dim):
            if not 1 <= sizes[dim] <= bound:
                snprintf(text, size, b"; dimension %lld has to be 1 to %lld, not %lld",
                         <long long>dim, <long long>bound, <long long>sizes[dim])
                return text
        elif sizes[dim] != bound:
            snprintf(text, size, b"; dimension %lld has to be %lld, not %lld", <long long>dim,
                     <long long>bound, <long long>sizes[dim])
            return text
    return text


# What the caller gives

cdef int take_declared(const Call* call, size_t number, const Value* value,
                       Given* given) noexcept nogil:
    cdef char[LABEL_BYTES] label
    cdef char[SIZES_BYTES] text
    cdef int64_t dim
    for dim in range(value.rank):
        if is_dynamic(value, dim):
            return refuse(call.failure, VKRT_ERROR_INPUT, b"%s: its sizes are dynamic (%s), so "
                          b"dtype, rank and sizes have to be given",
                          label_of(call, number, label), describe_value(value, text, sizeof(text)))
        if dim < VKRT_MAX_RANK:
            given.sizes[dim] = bound_of(value, dim)
    if value.rank > VKRT_MAX_RANK:
        return refuse(call.failure, VKRT_ERROR_UNSUPPORTED, b"%s: %lld dimensions, expected %d at "
                      b"most", label_of(call, number, label), <long long>value.rank,
                      VKRT_MAX_RANK)
    given.dtype, given.rank = value.dtype, <int32_t>value.rank
    return VKRT_OK


cdef int take_given(const Call* call, size_t number, const Value* value,
                    Given* given) noexcept nogil:
    """Dtype and sizes of an input."""
    cdef const vkrt_tensor* tensor = &call.inputs[number]
    cdef int64_t dtype = dtype_of(tensor.dtype)
    cdef int32_t dim
    if tensor.dtype == 0:
        return take_declared(call, number, value, given)
    if dtype < 0:
        return refuse(call.failure, VKRT_ERROR_INPUT, b"input %zu: dtype %d is none of vkrt.h",
                      number, <int>tensor.dtype)
    if not 0 <= tensor.rank <= VKRT_MAX_RANK:
        return refuse(call.failure, VKRT_ERROR_INPUT, b"input %zu: rank %d is not 0 to %d", number,
                      <int>tensor.rank, VKRT_MAX_RANK)
    given.dtype, given.rank = dtype, tensor.rank
    for dim in range(tensor.rank):
        given.sizes[dim] = tensor.sizes[dim]
    return VKRT_OK


cdef int check_bytes(const Call* call, size_t number, const Given* given) noexcept nogil:
    """Makes sure that the memory is as large as the tensor."""
    cdef const vkrt_tensor* tensor = &call.inputs[number]
    cdef size_t nbytes = tensor.nbytes if tensor.data != NULL else 0
    cdef int64_t wanted = itemsize_of(given.dtype)
    cdef char[SIZES_BYTES] text
    cdef bint overflows = False
    cdef int32_t dim
    put_sizes(given.sizes, given.rank, text, sizeof(text))
    for dim in range(given.rank):
        if given.sizes[dim] < 0:
            return refuse(call.failure, VKRT_ERROR_INPUT, b"input %zu: sizes %s are negative",
                          number, text)
        overflows = overflows or multiply_overflows(wanted, given.sizes[dim], &wanted)
    if overflows or <size_t>wanted != nbytes:
        return refuse(call.failure, VKRT_ERROR_INPUT, b"input %zu: %s%s has %lld bytes, and %zu "
                      b"are given", number, dtype_name(given.dtype), text, <long long>wanted,
                      nbytes)
    return VKRT_OK


cdef double number_at(const void* data, int64_t dtype) noexcept nogil:
    """The only element of a tensor."""
    cdef int64_t integer = 0
    cdef double number = 0
    cdef float single
    memcpy(&integer, data, <size_t>itemsize_of(dtype))  # little-endian, as everything here is
    if dtype == DTYPE_FLOAT64:
        memcpy(&number, data, 8)
        return number
    if dtype == DTYPE_FLOAT32:
        memcpy(&single, data, 4)
        return single
    if dtype == DTYPE_INT8:
        return <int8_t>integer
    if dtype == DTYPE_INT16:
        return <int16_t>integer
    if dtype == DTYPE_INT32:
        return <int32_t>integer
    return <double><uint64_t>integer if dtype == DTYPE_UINT64 else <double>integer


cdef double fixed_number(const Value* value) noexcept nogil:
    cdef int64_t row = value.member.row
    if value.member.which == ANY_FLAG:
        return <double>value.records.flag[row]
    if value.member.which == ANY_INTEGER:
        return <double>value.records.integer[row]
    return value.records.number[row]


cdef bint may_be(int64_t dtype, int64_t given) noexcept nogil:
    """Whether a number of a dtype may be passed in place of one of another."""
    if dtype == DTYPE_BOOL:
        return given == DTYPE_BOOL
    if given in (DTYPE_INT8, DTYPE_INT16, DTYPE_INT32, DTYPE_INT64, DTYPE_UINT8, DTYPE_UINT16,
                 DTYPE_UINT32, DTYPE_UINT64):
        return True
    return dtype == DTYPE_FLOAT64 and given in (DTYPE_FLOAT32, DTYPE_FLOAT64)


cdef int check_number(const Call* call, size_t number, const Value* value,
                      const Given* given) noexcept nogil:
    """An input that was a number when the program was exported, and takes nothing else."""
    cdef const vkrt_tensor* tensor = &call.inputs[number]
    cdef char[LABEL_BYTES] label
    cdef char[SIZES_BYTES] text
    if value.dtype < 0:  # None, which has no bytes
        if tensor.data != NULL and tensor.nbytes > 0:
            return refuse(call.failure, VKRT_ERROR_INPUT, b"%s: expected none, got %zu bytes",
                          label_of(call, number, label), tensor.nbytes)
        return VKRT_OK
    if check_bytes(call, number, given):
        return call.failure.code
    describe_value(value, text, sizeof(text))
    if given.rank > 0 or not may_be(value.dtype, given.dtype):
        return refuse(call.failure, VKRT_ERROR_INPUT, b"%s: expected %s, got %s of rank %d",
                      label_of(call, number, label), text, dtype_name(given.dtype),
                      <int>given.rank)
    if number_at(tensor.data, given.dtype) != fixed_number(value):
        return refuse(call.failure, VKRT_ERROR_INPUT, b"%s: expected %s, got %.17g",
                      label_of(call, number, label), text, number_at(tensor.data, given.dtype))
    return VKRT_OK


cdef int check_input(const Call* call, size_t number) noexcept nogil:
    cdef Value value = value_at(call.method, False, <int64_t>number)
    cdef char[LABEL_BYTES] label
    cdef char[SIZES_BYTES] text, sizes
    cdef char[120] wrong
    cdef Given given
    cdef bint is_tensor = value.member.which == ANY_TENSOR
    if (is_tensor or value.dtype >= 0) and take_given(call, number, &value, &given):
        return call.failure.code
    if not is_tensor:
        return check_number(call, number, &value, &given)
    if check_bytes(call, number, &given):
        return call.failure.code
    wrong[0] = 0
    if given.dtype == value.dtype and given.rank == value.rank:
        if wrong_dimension(&value, given.sizes, wrong, sizeof(wrong))[0] == 0:
            return VKRT_OK
    put_sizes(given.sizes, given.rank, sizes, sizeof(sizes))
    return refuse(call.failure, VKRT_ERROR_INPUT, b"%s: expected %s, got %s%s%s",
                  label_of(call, number, label), describe_value(&value, text, sizeof(text)),
                  dtype_name(given.dtype), sizes, wrong)


cdef int check_input_count(const Call* call) noexcept nogil:
    cdef char[TEXT_BYTES] text
    cdef int64_t wanted = value_count(call.method, False)
    if call.input_count == <size_t>wanted:
        return VKRT_OK
    return refuse(call.failure, VKRT_ERROR_INPUT, b"method '%.*s': expected %lld inputs (%s), got "
                  b"%zu", <int>min(call.method.name.count, <int64_t>100),
                  call.records.texts + call.method.name.first, <long long>wanted,
                  describe_values(call.method, False, text, sizeof(text)), call.input_count)


cdef int check_inputs(const Call* call) noexcept nogil:
    cdef size_t number
    if check_input_count(call):
        return call.failure.code
    for number in range(call.input_count):
        if check_input(call, number):
            return call.failure.code
    return VKRT_OK


# Shapes

cdef const Rows* input_sizes(const Call* call, int64_t shape, size_t number) noexcept nogil:
    """Sizes of an input at a shape; NULL for what is no tensor."""
    cdef const Member* member = (call.records.any + call.method.row.largest.inputs.first + number)
    if member.which != ANY_TENSOR:
        return NULL
    if shape == 0:
        return &call.records.tensor[member.row].sizes
    return (call.records.integer_rows + call.records.compiled_shape[
        call.method.row.others.first + shape - 1].inputs.first + number)


cdef bint is_shape(const Call* call, int64_t shape) noexcept nogil:
    cdef const Rows* sizes
    cdef const vkrt_tensor* tensor
    cdef size_t number
    cdef int64_t dim
    for number in range(call.input_count):
        sizes = input_sizes(call, shape, number)
        tensor = &call.inputs[number]
        if sizes == NULL or tensor.dtype == 0:  # which has sizes that are not dynamic
            continue
        if sizes.count != tensor.rank:
            return False
        for dim in range(sizes.count):
            if call.records.integer[sizes.first + dim] != tensor.sizes[dim]:
                return False
    return True


cdef size_t describe_shape(const Call* call, int64_t shape, char* text, size_t size) noexcept nogil:
    """The sizes of all inputs at a shape, or where that is less than 0 as they are given."""
    cdef const Rows* sizes
    cdef size_t used = 0, number
    text[0] = 0
    for number in range(call.input_count):
        sizes = input_sizes(call, max(shape, <int64_t>0), number)
        if sizes == NULL or used + 2 >= size:
            continue
        if used:
            text[used] = c' '
            used += 1
        if shape < 0 and call.inputs[number].dtype != 0:
            used += put_sizes(call.inputs[number].sizes, call.inputs[number].rank, text + used,
                              size - used)
        else:
            used += put_sizes(call.records.integer + sizes.first, sizes.count, text + used,
                              size - used)
    return used


cdef int find_shape(Call* call) noexcept nogil:
    """The shape of the inputs, which are checked."""
    cdef char[SIZES_BYTES] given
    cdef char[TEXT_BYTES] known
    cdef size_t used = 0
    cdef int64_t count = call.method.row.others.count + 1
    for call.shape in range(count):
        if is_shape(call, call.shape):
            return VKRT_OK
    describe_shape(call, -1, given, sizeof(given))
    for call.shape in range(count):
        if used + 3 < sizeof(known):
            used += snprintf(known + used, sizeof(known) - used, b"%s", b", " if used else b"")
            used += describe_shape(call, call.shape, known + used, sizeof(known) - used)
    return refuse(call.failure, VKRT_ERROR_INPUT, b"method '%.*s': it is not compiled for inputs "
                  b"of sizes %s; it is for %s", <int>min(call.method.name.count, <int64_t>100),
                  call.records.texts + call.method.name.first, given, known)
