# cython: cdivision=True, boundscheck=False, wraparound=False
"""Whether the border of a method is sound: what it says of its inputs and outputs is what its
commands read and write, at every shape."""

from libc.stdint cimport int64_t

from vkrt.core.check cimport product_of
from vkrt.core.dtypes cimport device_dtype, is_device_dtype
from vkrt.core.error cimport VKRT_OK, Error
from vkrt.core.flat cimport equal_texts, refused, wrong
from vkrt.core.records cimport (
    ANY_TENSOR, CompiledMethodRow, CompiledShapeRow, ExecutionPlanRow, IndexLimitRow, LimitRow,
    MaybeHostArrayRow, Member, MethodPlanRow, Records, Rows, TensorRow,
)

# A method at one shape
cdef struct Border:
    const Records* records
    Error* error
    const Rows* inputs  # of type Any
    const Rows* sizes  # of each input at this shape; NULL: its own
    const Rows* outputs
    const ExecutionPlanRow* execution
    const Rows* limits
    const Rows* index_limits


cdef int check_border(const Records* records, const CompiledMethodRow* method,
                      Error* error) noexcept nogil:
    """Checks the border of a method whose commands are sound."""
    cdef const MethodPlanRow* plan = &method.largest
    cdef const CompiledShapeRow* shape = records.compiled_shape + method.others.first
    cdef Border b
    cdef int64_t _
    b.records, b.error = records, error
    b.inputs, b.sizes, b.outputs = &plan.inputs, NULL, &plan.outputs
    b.execution, b.limits = &plan.executable.execution, &plan.limits
    b.index_limits = &plan.index_limits
    if check_names(records, plan, error) or check_at(&b):
        return error.status
    for _ in range(method.others.count):
        if shape.inputs.count != plan.inputs.count:
            return refused(records, &shape.inputs.count, error, "sizes of %lld inputs",
                           <long long>plan.inputs.count)
        b.sizes, b.outputs = records.integer_rows + shape.inputs.first, &shape.outputs
        b.execution, b.limits, b.index_limits = &shape.execution, &shape.limits, &shape.index_limits
        if check_at(&b):
            return error.status
        shape += 1
    return VKRT_OK


cdef int check_names(const Records* records, const MethodPlanRow* plan,
                     Error* error) noexcept nogil:
    cdef bint is_known = False
    cdef int64_t k
    for k in range(plan.methods.first, plan.methods.first + plan.methods.count):
        is_known = is_known or equal_texts(records, records.text + k, &plan.method)
    if not is_known:
        return refused(records, &plan.method, error, "the name of one of the methods")
    if plan.input_names.count not in (0, plan.inputs.count):
        return refused(records, &plan.input_names.count, error, "names of %lld inputs and their "
                       "names", <long long>plan.inputs.count)
    if plan.output_names.count not in (0, plan.outputs.count):
        return refused(records, &plan.output_names.count, error, "names of %lld outputs and their "
                       "names", <long long>plan.outputs.count)
    return VKRT_OK


cdef int check_at(Border* b) noexcept nogil:
    cdef const Member* inputs = b.records.any + b.inputs.first
    cdef const Member* outputs = b.records.any + b.outputs.first
    cdef const MaybeHostArrayRow* array = (b.records.maybe_host_array + b.execution.inputs.first)
    cdef const Rows* sizes = b.sizes
    cdef int64_t k
    if b.execution.inputs.count != b.inputs.count:
        return wrong(b, &b.execution.inputs.count, "%lld inputs and their names",
                     <long long>b.inputs.count)
    if b.execution.outputs.count != b.outputs.count:
        return wrong(b, &b.execution.outputs.count, "%lld outputs and their names",
                     <long long>b.outputs.count)
    for k in range(b.inputs.count):
        if check_value(b, inputs + k, sizes, array + k, False):
            return b.error.status
        if sizes != NULL:
            sizes += 1
    array = b.records.maybe_host_array + b.execution.outputs.first
    for k in range(b.outputs.count):
        if check_value(b, outputs + k, NULL, array + k, True):
            return b.error.status
    return check_limits(b)


cdef int check_value(Border* b, const Member* value, const Rows* sizes,
                     const MaybeHostArrayRow* array, bint is_output) noexcept nogil:
    """An input or output, and the array that stands for it."""
    cdef const TensorRow* tensor = b.records.tensor + value.row
    cdef int64_t elements
    if value.which != ANY_TENSOR:
        if array.is_there:
            return wrong(b, &array.is_there, "no array of what is no tensor")
        return VKRT_OK
    if sizes == NULL:
        sizes = &tensor.sizes
    if check_tensor(b, tensor, sizes):
        return b.error.status
    if not array.is_there:
        if is_output:
            return wrong(b, &array.is_there, "an array of a tensor")
        return VKRT_OK
    elements = product_of(b.records, sizes)
    if elements < 0 or elements != product_of(b.records, &array.value.sizes):
        return wrong(b, &array.value.sizes.count, "sizes of an array of %lld elements",
                     <long long>elements)
    if device_dtype(tensor.host_dtype) != array.value.dtype:
        return wrong(b, &array.value.dtype, "the dtype of an array of the tensor's")
    return VKRT_OK


cdef int check_tensor(Border* b, const TensorRow* tensor, const Rows* sizes) noexcept nogil:
    cdef const int64_t* numbers = b.records.integer
    cdef int64_t k
    for k in range(sizes.first, sizes.first + sizes.count):
        if numbers[k] < 0:
            return wrong(b, numbers + k, "a size of a tensor")
    if not is_device_dtype(tensor.dtype):
        return wrong(b, &tensor.dtype, "a dtype that kernels read")
    if tensor.bounds.is_there and tensor.bounds.value.count != sizes.count:
        return wrong(b, &tensor.bounds.value.count, "bounds of %lld sizes", <long long>sizes.count)
    for k in range(tensor.dynamic_dims.first,
                   tensor.dynamic_dims.first + tensor.dynamic_dims.count):
        if not 0 <= numbers[k] < sizes.count:
            return wrong(b, numbers + k, "one of %lld dimensions", <long long>sizes.count)
    return VKRT_OK


cdef int check_limits(Border* b) noexcept nogil:
    """What inputs may hold is said of tensors."""
    cdef const LimitRow* limit = b.records.limit + b.limits.first
    cdef const IndexLimitRow* index = b.records.index_limit + b.index_limits.first
    cdef int64_t k
    for k in range(b.limits.count):
        if not is_tensor(b, limit[k].read.input) or limit[k].read.element < 0:
            return wrong(b, &limit[k].read.input, "an element of an input")
    for k in range(b.index_limits.count):
        if not is_tensor(b, index[k].input):
            return wrong(b, &index[k].input, "an input that is a tensor")
    return VKRT_OK


cdef bint is_tensor(const Border* b, int64_t number) noexcept nogil:
    return 0 <= number < b.inputs.count \
        and b.records.any[b.inputs.first + number].which == ANY_TENSOR
