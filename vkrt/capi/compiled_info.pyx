from libc.stdio cimport snprintf
from libc.string cimport memcpy, memset, strcmp

from vkrt.capi.failure cimport refuse
from vkrt.capi.table cimport VKRT_MAX_RANK, VKRT_OK
from vkrt.core.dtypes cimport itemsize_of
from vkrt.core.error cimport VKRT_ERROR_INPUT, VKRT_ERROR_UNSUPPORTED
from vkrt.core.flat cimport ENUM, part_at, type_at
from vkrt.core.records cimport (
    ANY_FLAG, ANY_INTEGER, ANY_NOTHING, ANY_NUMBER, ANY_TENSOR, ANY_TEXT, DTYPE_BOOL, DTYPE_FLOAT16,
    DTYPE_FLOAT32, DTYPE_FLOAT64, DTYPE_INT8, DTYPE_INT16, DTYPE_INT32, DTYPE_INT64, DTYPE_UINT8,
    DTYPE_UINT16, DTYPE_UINT32, DTYPE_UINT64, TYPES, TensorRow, Text,
)

cdef enum:
    # One more than the largest number that vkrt.h has for a dtype
    DTYPES = 13


cdef int64_t dtype_of(int32_t number) noexcept nogil:
    cdef int64_t[DTYPES] dtypes = [
        -1, DTYPE_FLOAT32, DTYPE_FLOAT16, DTYPE_FLOAT64, DTYPE_BOOL, DTYPE_UINT8, DTYPE_INT8,
        DTYPE_INT16, DTYPE_INT32, DTYPE_INT64, DTYPE_UINT16, DTYPE_UINT32, DTYPE_UINT64]
    return dtypes[number] if 0 < number < DTYPES else -1


cdef int32_t number_of(int64_t dtype) noexcept nogil:
    """The number that vkrt.h has for a dtype; 0 for none."""
    cdef int32_t number
    for number in range(1, DTYPES):
        if dtype_of(number) == dtype:
            return number
    return 0


cdef const char* dtype_name(int64_t dtype) noexcept nogil:
    cdef int i
    for i in range(TYPES):
        if (type_at(i).kind == ENUM and strcmp(type_at(i).name, b"Dtype") == 0
                and 0 <= dtype < type_at(i).count):
            return part_at(type_at(i).first + <int>dtype).name
    return b"none"


# Values

cdef Value value_of(const Records* records, const Member* member) noexcept nogil:
    cdef const TensorRow* tensor = records.tensor + member.row
    cdef Value value
    memset(&value, 0, sizeof(value))
    value.records, value.member, value.dtype = records, member, -1
    if member.which == ANY_TENSOR:
        value.dtype = tensor.host_dtype
        value.bounds = &tensor.sizes
        if tensor.bounds.is_there and tensor.dynamic_dims.count > 0:
            value.bounds = &tensor.bounds.value
        value.dynamic_dims = &tensor.dynamic_dims
        value.rank = tensor.sizes.count
    elif member.which == ANY_FLAG:
        value.dtype = DTYPE_BOOL
    elif member.which == ANY_INTEGER:
        value.dtype = DTYPE_INT64
    elif member.which == ANY_NUMBER:
        value.dtype = DTYPE_FLOAT64
    value.number = number_of(value.dtype)
    return value


cdef const Rows* values_of(const ProgramMethod* method, bint is_output) noexcept nogil:
    """NULL for none."""
    if method.constants != NULL:
        return &method.constants.values if is_output else NULL
    return &method.row.largest.outputs if is_output else &method.row.largest.inputs


cdef int64_t value_count(const ProgramMethod* method, bint is_output) noexcept nogil:
    cdef const Rows* values = values_of(method, is_output)
    return values.count if values != NULL else 0


cdef Value value_at(const ProgramMethod* method, bint is_output, int64_t number) noexcept nogil:
    cdef const Records* records = &method.program.program.records
    return value_of(records, records.any + values_of(method, is_output).first + number)


cdef bint is_dynamic(const Value* value, int64_t dim) noexcept nogil:
    cdef int64_t i
    if value.dynamic_dims != NULL:
        for i in range(value.dynamic_dims.count):
            if value.records.integer[value.dynamic_dims.first + i] == dim:
                return True
    return False


cdef int64_t bound_of(const Value* value, int64_t dim) noexcept nogil:
    cdef const TensorRow* tensor = value.records.tensor + value.member.row
    # Sizes that no call changes are what they are.
    if is_dynamic(value, dim):
        return value.records.integer[value.bounds.first + dim]
    return value.records.integer[tensor.sizes.first + dim]


# For callers

cdef void put_text(char* place, size_t size, const char* text, size_t nbytes) noexcept nogil:
    if nbytes >= size:
        nbytes = size - 1
        while nbytes > 0 and text[nbytes] & 0xC0 == 0x80:
            nbytes -= 1
    memcpy(place, text, nbytes)
    place[nbytes] = 0


cdef const char* name_value(const ProgramMethod* method, bint is_output, int64_t number, char* text,
                            size_t size) noexcept nogil:
    cdef const Records* records = &method.program.program.records
    cdef const Rows* names = NULL
    cdef const Text* name
    if method.constants == NULL:
        names = (&method.row.largest.output_names if is_output else &method.row.largest.input_names)
    if names == NULL or names.count == 0:
        snprintf(text, size, b"%s_%lld", b"output" if is_output else b"input", <long long>number)
    else:
        name = records.text + names.first + number
        put_text(text, size, records.texts + name.first, <size_t>name.count)
    return text


cdef const char* kind_name(const Value* value) noexcept nogil:
    """Of its dtype; also where vkrt.h has no number for it."""
    if value.dtype >= 0:
        return dtype_name(value.dtype)
    return (b"none" if value.member.which == ANY_NOTHING
            else b"str" if value.member.which == ANY_TEXT else b"unknown")


cdef int fill_info(vkrt_failure* failure, const ProgramMethod* method, bint is_output,
                   size_t number, vkrt_tensor_info* info) noexcept nogil:
    cdef Value value
    cdef int64_t dim
    if number >= <size_t>value_count(method, is_output):
        return refuse(failure, VKRT_ERROR_INPUT, b"%s %zu: the method has %lld",
                      b"output" if is_output else b"input", number,
                      <long long>value_count(method, is_output))
    value = value_at(method, is_output, <int64_t>number)
    name_value(method, is_output, <int64_t>number, info.name, sizeof(info.name))
    if value.number == 0:
        return refuse(failure, VKRT_ERROR_UNSUPPORTED, b"dtype %s has no number in vkrt.h",
                      kind_name(&value))
    if value.rank > VKRT_MAX_RANK:
        return refuse(failure, VKRT_ERROR_UNSUPPORTED, b"%lld dimensions, expected %d at most",
                      <long long>value.rank, VKRT_MAX_RANK)
    info.dtype, info.rank = value.number, <int32_t>value.rank
    info.nbytes = itemsize_of(value.dtype)
    for dim in range(value.rank):
        info.sizes[dim] = bound_of(&value, dim)
        info.nbytes *= <unsigned long long>info.sizes[dim]
        if is_dynamic(&value, dim):
            info.dynamic |= <unsigned>1 << dim
    return VKRT_OK


# For messages

cdef void describe_number(const Value* value, char* text, size_t size) noexcept nogil:
    """An input that is no tensor takes one value alone."""
    cdef const char* dtype = kind_name(value)
    cdef int64_t row = value.member.row
    if value.member.which == ANY_FLAG:
        snprintf(text, size, b"%s, always %s", dtype,
                 b"True" if value.records.flag[row] else b"False")
    elif value.member.which == ANY_INTEGER:
        snprintf(text, size, b"%s, always %lld", dtype, <long long>value.records.integer[row])
    elif value.member.which == ANY_NUMBER:
        snprintf(text, size, b"%s, always %.17g", dtype, value.records.number[row])
    else:
        snprintf(text, size, b"%s", dtype)


cdef const char* describe_value(const Value* value, char* text, size_t size) noexcept nogil:
    cdef size_t used
    cdef int64_t dim
    if value.bounds == NULL:
        describe_number(value, text, size)
        return text
    used = snprintf(text, size, b"%s[", dtype_name(value.dtype))
    for dim in range(value.rank):
        if used < size - 1:
            used += snprintf(text + used, size - used, b"%s%s%lld", b"," if dim else b"",
                             b"<=" if is_dynamic(value, dim) else b"",
                             <long long>bound_of(value, dim))
    if used < size - 1:
        snprintf(text + used, size - used, b"]")
    return text


cdef const char* describe_values(const ProgramMethod* method, bint is_output, char* text,
                                 size_t size) noexcept nogil:
    cdef char[80] name
    cdef char[120] description
    cdef Value value
    cdef size_t used = 0
    cdef int64_t i
    snprintf(text, size, b"none")
    for i in range(value_count(method, is_output)):
        value = value_at(method, is_output, i)
        if used < size - 1:
            used += snprintf(text + used, size - used, b"%s'%s' %s", b", " if i else b"",
                             name_value(method, is_output, i, name, sizeof(name)),
                             describe_value(&value, description, sizeof(description)))
    return text
