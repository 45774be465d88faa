# cython: cdivision=True, boundscheck=False, wraparound=False
"""Whether commands are sound: what they read and write is there, and of the kind that kernels
want; and so what the host reads and writes."""

from libc.stdint cimport int64_t

from vkrt.core.check cimport (
    MOST_BYTES, MOST_PUSH_CONSTANTS, Check, check_in_file, check_memory, check_range, find_module,
    is_image, product_of,
)
from vkrt.core.checked cimport multiply_overflows
from vkrt.core.dtypes cimport is_device_dtype, itemsize_of
from vkrt.core.error cimport VKRT_OK
from vkrt.core.flat cimport is_text, wrong
from vkrt.core.records cimport (
    ANY_ANY_ROWS, ANY_FLAG, ANY_READ_ARGUMENT, COMMAND_COPY, COMMAND_DISPATCH, DTYPE_INT32,
    BarrierCommandRow, BindingRow, CopyCommandRow, DispatchCommandRow, ExecutionPlanRow,
    HostArrayRow, HostKernelRow, Integers2Row, KernelRow, MaybeHostArrayRow, Member,
    ModuleBindingRow, ModuleRow, Records, RowTableRow, Rows, SubmissionRecordRow,
)

cdef enum:
    # VkDescriptorType
    COMBINED_IMAGE_SAMPLER = 1
    STORAGE_IMAGE = 3


cdef bint is_word(int64_t value) noexcept nogil:
    """Whether a number is one of 32 bits, with a sign or without."""
    return -(<int64_t>1 << 31) <= value < <int64_t>1 << 32


cdef bint is_format(int64_t value) noexcept nogil:
    """Whether it is a VkFormat of texels (`vkrt.executable.formats`), or 0 for none."""
    return value in (0, 41, 42, 95, 97, 108, 109)


cdef int check_execution(Check* c, const ExecutionPlanRow* execution) noexcept nogil:
    """The commands of a run, and the arrays that come in and go out."""
    cdef const SubmissionRecordRow* submission = (c.records.submission_record
                                                  + execution.submissions.first)
    cdef int64_t k
    if check_kernels(c, &execution.kernels):
        return c.error.status
    for k in range(execution.submissions.count):
        if (check_commands(c, &submission[k].commands, &execution.kernels)
                or submission[k].host.is_there and check_host(c, &submission[k].host.value)):
            return c.error.status
    return check_border(c, &execution.inputs) or check_border(c, &execution.outputs)


cdef int check_border(Check* c, const Rows* arrays) noexcept nogil:
    cdef const MaybeHostArrayRow* array = c.records.maybe_host_array + arrays.first
    cdef int64_t k
    for k in range(arrays.count):
        if array[k].is_there and check_array(c, &array[k].value):
            return c.error.status
    return VKRT_OK


cdef int check_kernels(Check* c, const Rows* kernels) noexcept nogil:
    """Shaders of the file's modules, with words of 32 bits as their constants."""
    cdef const KernelRow* kernel = c.records.kernel + kernels.first
    cdef const Integers2Row* pair
    cdef int64_t k, n
    for k in range(kernels.count):
        if find_module(c.records, &kernel[k].shader) == NULL:
            return wrong(c, &kernel[k].shader, "the name of a module, not %.*s",
                         <int>min(kernel[k].shader.count, <int64_t>80),
                         c.records.texts + kernel[k].shader.first)
        pair = c.records.integers_2 + kernel[k].constants.first
        for n in range(kernel[k].constants.count):
            if not 0 <= pair[n].items[0] < <int64_t>1 << 32 or not is_word(pair[n].items[1]):
                return wrong(c, &pair[n].items[0], "words of 32 bits")
    return VKRT_OK


cdef int check_commands(Check* c, const Rows* commands, const Rows* kernels) noexcept nogil:
    """Commands whose dispatches are of some kernels."""
    cdef const Member* command = c.records.command + commands.first
    cdef int64_t k
    cdef int status
    for k in range(commands.count):
        if command[k].which == COMMAND_DISPATCH:
            status = check_dispatch(c, c.records.dispatch_command + command[k].row, kernels)
        elif command[k].which == COMMAND_COPY:
            status = check_copy(c, c.records.copy_command + command[k].row)
        else:
            status = check_barrier(c, c.records.barrier_command + command[k].row)
        if status != VKRT_OK:
            return status
    return VKRT_OK


cdef int check_copy(Check* c, const CopyCommandRow* copy) noexcept nogil:
    if check_range(c, &copy.source) or check_range(c, &copy.target):
        return c.error.status
    if is_image(c, copy.source.storage) or is_image(c, copy.target.storage):
        return wrong(c, &copy.source.storage, "bytes of a buffer, and of another one")
    if copy.source.nbytes == 0 or copy.source.nbytes != copy.target.nbytes:
        return wrong(c, &copy.source.nbytes, "equal bytes")
    return VKRT_OK


cdef int check_barrier(Check* c, const BarrierCommandRow* barrier) noexcept nogil:
    cdef const int64_t* image = c.records.integer + barrier.images.first
    cdef int64_t k
    if not (is_word(barrier.source_stages) and is_word(barrier.source_access)
            and is_word(barrier.stages) and is_word(barrier.access)):
        return wrong(c, &barrier.source_stages, "four times flags of 32 bits")
    for k in range(barrier.images.count):
        if check_memory(c, image + k):
            return c.error.status
        if not is_image(c, image[k]):
            return wrong(c, image + k, "the number of an image")
    return VKRT_OK


cdef int check_dispatch(Check* c, const DispatchCommandRow* dispatch,
                        const Rows* kernels) noexcept nogil:
    """Its kernel exists, and has something of its kind at each binding."""
    cdef const int64_t* pushed = c.records.integer + dispatch.push_constants.first
    cdef const BindingRow* binding = c.records.binding + dispatch.bindings.first
    cdef const ModuleBindingRow* expected
    cdef const ModuleRow* module
    cdef int64_t k
    if not 0 <= dispatch.kernel < kernels.count:
        return wrong(c, &dispatch.kernel, "one of %lld kernels", <long long>kernels.count)
    if dispatch.push_constants.count > MOST_PUSH_CONSTANTS:
        return wrong(c, &dispatch.push_constants.count, "%d push constants at most",
                     MOST_PUSH_CONSTANTS)
    for k in range(dispatch.push_constants.count):
        if not is_word(pushed[k]):
            return wrong(c, pushed + k, "push constants of 32 bits")
    for k in range(3):
        if not 0 < dispatch.groups[k] < <int64_t>1 << 32:
            return wrong(c, &dispatch.groups[k], "workgroups")
    module = find_module(c.records, &c.records.kernel[kernels.first + dispatch.kernel].shader)
    if dispatch.bindings.count != module.bindings.count:
        return wrong(c, &dispatch.bindings.count, "the bindings of its shader, %lld of them",
                     <long long>module.bindings.count)
    expected = c.records.module_binding + module.bindings.first
    for k in range(dispatch.bindings.count):
        if check_binding(c, binding + k, expected + k):
            return c.error.status
    return VKRT_OK


cdef int check_binding(Check* c, const BindingRow* binding,
                       const ModuleBindingRow* expected) noexcept nogil:
    if binding.number != expected.number or binding.type != expected.type:
        return wrong(c, &binding.number, "the bindings of its shader, here %lld of type %lld",
                     <long long>expected.number, <long long>expected.type)
    if check_range(c, &binding.range):
        return c.error.status
    if is_image(c, binding.range.storage) != (binding.type == COMBINED_IMAGE_SAMPLER
                                              or binding.type == STORAGE_IMAGE):
        return wrong(c, &binding.range.storage, "what a binding of type %lld has",
                     <long long>binding.type)
    if binding.range.nbytes == 0:
        return wrong(c, &binding.range.nbytes, "what a binding has, which is some bytes")
    if not is_format(binding.format):
        return wrong(c, &binding.format, "what a binding has, a format of texels")
    return VKRT_OK


# What the host reads and writes

cdef int check_array(Check* c, const HostArrayRow* array) noexcept nogil:
    cdef int64_t elements = product_of(c.records, &array.sizes), nbytes
    if check_range(c, &array.range):
        return c.error.status
    if is_image(c, array.range.storage):
        return wrong(c, &array.range.storage, "an array within its bytes of a buffer")
    if not is_device_dtype(array.dtype):
        return wrong(c, &array.dtype, "a dtype that kernels read")
    if elements < 0 or multiply_overflows(elements, itemsize_of(array.dtype), &nbytes) \
            or nbytes > array.range.nbytes:
        return wrong(c, &array.range.nbytes, "an array within its bytes of a buffer")
    return VKRT_OK


cdef int check_host(Check* c, const HostKernelRow* host) noexcept nogil:
    """A kernel of the host; a branch has pairs of an array and what it has to be; a read of rows
    has a table."""
    cdef const HostArrayRow* arrays = c.records.host_array
    cdef const Member* args = c.records.any + host.args.first
    cdef const Member* pair
    cdef const Rows* pairs
    cdef int64_t k
    for k in range(host.reads.first, host.reads.first + host.reads.count):
        if check_array(c, arrays + k):
            return c.error.status
    for k in range(host.writes.first, host.writes.first + host.writes.count):
        if check_array(c, arrays + k):
            return c.error.status
    if host.table.is_there:
        return check_row_read(c, host)
    if is_branch(c.records, host):
        for k in range(host.args.count):
            pairs = c.records.any_rows + args[k].row
            if args[k].which != ANY_ANY_ROWS or pairs.count != 2:
                return wrong(c, &args[k].which, "an array and what it has to be")
            pair = c.records.any + pairs.first
            if pair[0].which != ANY_READ_ARGUMENT or pair[1].which != ANY_FLAG:
                return wrong(c, &pair[0].which, "an array and what it has to be")
    return check_arguments(c, &host.args, host.reads.count)


cdef int check_row_read(Check* c, const HostKernelRow* host) noexcept nogil:
    """One array of the numbers of rows, one that has room for these, and a table in a file."""
    cdef const RowTableRow* table = &host.table.value
    cdef const HostArrayRow* indices = c.records.host_array + host.reads.first
    cdef const HostArrayRow* rows = c.records.host_array + host.writes.first
    cdef int64_t end = c.source_bytes if c.source_bytes else MOST_BYTES, nbytes
    if host.reads.count != 1 or host.writes.count != 1 or host.args.count != 0 \
            or is_branch(c.records, host):
        return wrong(c, &host.reads.count, "an array of numbers of rows, and one of rows")
    if indices.dtype != DTYPE_INT32:
        return wrong(c, &indices.dtype, "numbers of rows")
    if check_in_file(c, &table.source, &table.offset, &table.row_bytes):
        return c.error.status
    if table.rows <= 0 or multiply_overflows(table.row_bytes, table.rows, &nbytes) \
            or nbytes > end - table.offset:
        return wrong(c, &table.rows, "rows within a file of %lld bytes", <long long>end)
    if multiply_overflows(product_of(c.records, &indices.sizes), table.row_bytes, &nbytes) \
            or nbytes != product_of(c.records, &rows.sizes) * itemsize_of(rows.dtype):
        return wrong(c, &table.row_bytes, "as many bytes of rows as there is room for")
    return VKRT_OK


cdef bint is_branch(const Records* records, const HostKernelRow* host) noexcept nogil:
    """Whether it is a branch (`vkrt.work.host_arguments.BRANCH`), not a kernel."""
    return is_text(records, &host.name, "vkrt::branch")


cdef int check_arguments(Check* c, const Rows* args, int64_t arrays) noexcept nogil:
    """Those that stand for arrays, also in tuples."""
    cdef const Member* arg = c.records.any + args.first
    cdef int64_t k
    for k in range(args.count):
        if arg[k].which == ANY_READ_ARGUMENT:
            if not 0 <= c.records.read_argument[arg[k].row].read < arrays:
                return wrong(c, c.records.read_argument + arg[k].row, "one of %lld arrays",
                             <long long>arrays)
        elif arg[k].which == ANY_ANY_ROWS:
            if check_arguments(c, c.records.any_rows + arg[k].row, arrays):
                return c.error.status
    return VKRT_OK
