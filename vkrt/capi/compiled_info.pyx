# cython: language_level=3

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

cdef extern from * nogil:
    """
    #include "vkrt.h"
    """
    enum:
        VKRT_FLOAT32
        VKRT_FLOAT16
        VKRT_FLOAT64
        VKRT_BOOL
        VKRT_UINT8
        VKRT_INT8
        VKRT_INT16
        VKRT_INT32
        VKRT_INT64
        VKRT_UINT16
        VKRT_UINT32
        VKRT_UINT64
        VKRT_MOST_DTYPE "VKRT_UINT64"


cdef int64_t dtype_of(int32_t number) noexcept nogil:
    cdef int64_t dtype
    if number == VKRT_FLOAT32:
        dtype = DTYPE_FLOAT32
    elif number == VKRT_FLOAT16:
        dtype = DTYPE_FLOAT16
    elif number == VKRT_FLOAT64:
        dtype = DTYPE_FLOAT64
    elif number == VKRT_BOOL:
        dtype = DTYPE_BOOL
    elif number == VKRT_UINT8:
        dtype = DTYPE_UINT8
    elif number == VKRT_INT8:
        dtype = DTYPE_INT8
    elif number == VKRT_INT16:
        dtype = DTYPE_INT16
    elif number == VKRT_INT32:
        dtype = DTYPE_INT32
    elif number == VKRT_INT64:
        dtype = DTYPE_INT64
    elif number == VKRT_UINT16:
        dtype = DTYPE_UINT16
    elif number == VKRT_UINT32:
        dtype = DTYPE_UINT32
    elif number == VKRT_UINT64:
        dtype = DTYPE_UINT64
    else:
        dtype = -1
    return dtype


cdef int32_t number_of(int64_t dtype) noexcept nogil:
    """The number that vkrt.h has for a dtype; 0 for none."""
    cdef int32_t number
    for number in range(1, VKRT_MOST_DTYPE + 1):
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


cdef int64_t input_count(const ProgramMethod* method) noexcept nogil:
    return 0 if method.constants != NULL else method.row.largest.inputs.count


cdef int64_t output_count(const ProgramMethod* method) noexcept nogil:
    if method.constants != NULL:
        return method.constants.values.count
    return method.row.largest.outputs.count


cdef Value input_value(const ProgramMethod* method, int64_t number) noexcept nogil:
    cdef const Records* records = &method.program.program.records
    return value_of(records, records.any + method.row.largest.inputs.first + number)


cdef Value output_value(const ProgramMethod* method, int64_t number) noexcept nogil:
    cdef const Records* records = &method.program.program.records
    if method.constants != NULL:
        return value_of(records, records.any + method.constants.values.first + number)
    return value_of(records, records.any + method.row.largest.outputs.first + number)


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


cdef void put_name(const ProgramMethod* method, const Rows* names, const char* kind,
                   int64_t number, char* place, size_t size) noexcept nogil:
    cdef const Records* records = &method.program.program.records
    cdef const Text* name
    if names == NULL or names.count == 0:
        snprintf(place, size, b"%s_%lld", kind, <long long>number)
        return
    name = records.text + names.first + number
    put_text(place, size, records.texts + name.first, <size_t>name.count)


cdef const Rows* input_names(const ProgramMethod* method) noexcept nogil:
    if method.constants != NULL:
        return NULL
    return &method.row.largest.input_names


cdef const Rows* output_names(const ProgramMethod* method) noexcept nogil:
    if method.constants != NULL:
        return NULL
    return &method.row.largest.output_names


cdef const char* kind_name(const Value* value) noexcept nogil:
    """Of its dtype; also where vkrt.h has no number for it."""
    if value.dtype >= 0:
        return dtype_name(value.dtype)
    return (b"none" if value.member.which == ANY_NOTHING
            else b"str" if value.member.which == ANY_TEXT else b"unknown")


cdef int fill_info(vkrt_failure* failure, const Value* value,
                   vkrt_tensor_info* info) noexcept nogil:
    cdef int64_t dim
    if value.number == 0:
        return refuse(failure, VKRT_ERROR_UNSUPPORTED, b"dtype %s has no number in vkrt.h",
                      kind_name(value))
    if value.rank > VKRT_MAX_RANK:
        return refuse(failure, VKRT_ERROR_UNSUPPORTED, b"%lld dimensions, expected %d at most",
                      <long long>value.rank, VKRT_MAX_RANK)
    info.dtype, info.rank = value.number, <int32_t>value.rank
    info.nbytes = itemsize_of(value.dtype)
    for dim in range(value.rank):
        info.sizes[dim] = bound_of(value, dim)
        info.nbytes *= <unsigned long long>info.sizes[dim]
        if is_dynamic(value, dim):
            info.dynamic |= <unsigned>1 << dim
    return VKRT_OK


cdef int fill_input_info(vkrt_failure* failure, const ProgramMethod* method, size_t number,
                         vkrt_tensor_info* info) noexcept nogil:
    cdef Value value
    if number >= <size_t>input_count(method):
        return refuse(failure, VKRT_ERROR_INPUT, b"input %zu: the method has %lld", number,
                      <long long>input_count(method))
    value = input_value(method, <int64_t>number)
    put_name(method, input_names(method), b"input", <int64_t>number, info.name, sizeof(info.name))
    return fill_info(failure, &value, info)


cdef int fill_output_info(vkrt_failure* failure, const ProgramMethod* method, size_t number,
                          vkrt_tensor_info* info) noexcept nogil:
    cdef Value value
    if number >= <size_t>output_count(method):
        return refuse(failure, VKRT_ERROR_INPUT, b"output %zu: the method has %lld", number,
                      <long long>output_count(method))
    value = output_value(method, <int64_t>number)
    put_name(method, output_names(method), b"output", <int64_t>number, info.name, sizeof(info.name))
    return fill_info(failure, &value, info)


# For messages

cdef const char* name_input(const ProgramMethod* method, int64_t number, char* text,
                            size_t size) noexcept nogil:
    put_name(method, input_names(method), b"input", number, text, size)
    return text


cdef const char* name_output(const ProgramMethod* method, int64_t number, char* text,
                             size_t size) noexcept nogil:
    put_name(method, output_names(method), b"output", number, text, size)
    return text


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


cdef size_t describe_named(const ProgramMethod* method, const Rows* names, const char* kind,
                           int64_t number, const Value* value, char* text,
                           size_t size) noexcept nogil:
    cdef char[80] name
    cdef char[120] description
    put_name(method, names, kind, number, name, sizeof(name))
    return snprintf(text, size, b"%s'%s' %s", b", " if number else b"", name,
                    describe_value(value, description, sizeof(description)))


cdef const char* describe_all(const ProgramMethod* method, bint outputs, char* text,
                              size_t size) noexcept nogil:
    """All inputs of a method, or all outputs."""
    cdef const Rows* names = output_names(method) if outputs else input_names(method)
    cdef const char* kind = b"output" if outputs else b"input"
    cdef Value value
    cdef size_t used = 0
    cdef int64_t i
    snprintf(text, size, b"none")
    for i in range(output_count(method) if outputs else input_count(method)):
        value = output_value(method, i) if outputs else input_value(method, i)
        if used < size - 1:
            used += describe_named(method, names, kind, i, &value, text + used, size - used)
    return text


cdef const char* describe_inputs(const ProgramMethod* method, char* text,
                                 size_t size) noexcept nogil:
    return describe_all(method, False, text, size)


cdef const char* describe_outputs(const ProgramMethod* method, char* text,
                                  size_t size) noexcept nogil:
    return describe_all(method, True, text, size)
