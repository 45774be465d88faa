# cython: cdivision=True

from libc.stdlib cimport calloc, free
from libc.string cimport memset

from vkrt.core.check cimport product_of
from vkrt.core.dtypes cimport itemsize_of
from vkrt.core.error cimport VKRT_ERROR_INPUT, VKRT_ERROR_MEMORY, VKRT_OK, fail
from vkrt.core.grouped cimport GROUPED, grouped
from vkrt.core.records cimport (
    COMMAND_COPY, COMMAND_DISPATCH, ROLE_ACTIVATION, BindingRow, CopyCommandRow, DispatchCommandRow,
    HostArrayRow, MaybeHostArrayRow, Rows, StorageRow, SubmissionRecordRow,
)
from vkrt.core.vulkan cimport VK_NULL_HANDLE, VkBuffer

cdef enum:
    # Of a storage: a step writes it; it is touched otherwise than by kernels of the device; a
    # buffer stands for it.
    WRITTEN = 1
    TOUCHED = 2
    PLACED = 4


# Bytes of a VkBuffer: those of a tensor, or what a run writes of an output
cdef struct Span:
    VkBuffer handle
    uint64_t first, nbytes


# What is known while the use of buffers is planned
cdef struct Search:
    ExternalPlan* found
    const Records* records
    const ExecutionPlanRow* plan
    uint64_t alignment
    char* flags  # of every storage
    Span* tensors  # of every output; without a handle where it is no external one
    Span* changed  # in the same way


cdef bint overlaps(const Span* one, const Span* other) noexcept nogil:
    """Whether the two have a byte in common."""
    return (one.handle == other.handle and one.handle != VK_NULL_HANDLE
            and max(one.first, other.first) < min(one.first + one.nbytes,
                                                  other.first + other.nbytes))


cdef bint overlaps_any(const Span* one, const Span* others, int64_t number,
                       int64_t without) noexcept nogil:
    cdef int64_t i
    for i in range(number):
        if i != without and overlaps(one, others + i):
            return True
    return False


cdef void flag_arrays(Search* search, const Rows* arrays, char flag) noexcept nogil:
    cdef int64_t i
    for i in range(arrays.first, arrays.first + arrays.count):
        search.flags[search.records.host_array[i].range.storage] |= flag


cdef void flag_command(Search* search, int64_t which, int64_t row) noexcept nogil:
    cdef const BindingRow* binding
    cdef const CopyCommandRow* copy
    cdef const DispatchCommandRow* dispatch
    cdef int64_t i
    if which == COMMAND_COPY:
        copy = search.records.copy_command + row
        search.flags[copy.source.storage] |= TOUCHED
        search.flags[copy.target.storage] |= TOUCHED | WRITTEN
    elif which == COMMAND_DISPATCH:
        dispatch = search.records.dispatch_command + row
        for i in range(dispatch.bindings.count):
            binding = search.records.binding + dispatch.bindings.first + i
            if binding.is_written:
                search.flags[binding.range.storage] |= WRITTEN


cdef void flag_storages(Search* search) noexcept nogil:
    cdef const SubmissionRecordRow* submission
    cdef int64_t i, k
    for i in range(search.plan.submissions.count):
        submission = search.records.submission_record + search.plan.submissions.first + i
        for k in range(submission.commands.first,
                       submission.commands.first + submission.commands.count):
            flag_command(search, search.records.command[k].which, search.records.command[k].row)
        if submission.host.is_there:
            flag_arrays(search, &submission.host.value.reads, TOUCHED)
            flag_arrays(search, &submission.host.value.writes, TOUCHED | WRITTEN)


cdef int tensor_of(const Records* records, const HostArrayRow* array, const ExternalBuffer* buffer,
                   const char* label, int64_t number, Span* tensor, Error* error) noexcept nogil:
    """The bytes of the elements of an array, without padding: so many the buffer has at least."""
    cdef char[GROUPED] expected, had
    tensor.handle, tensor.first = buffer.handle, buffer.offset
    tensor.nbytes = <uint64_t>(product_of(records, &array.sizes) * itemsize_of(array.dtype))
    if buffer.nbytes < tensor.nbytes:
        return fail(error, VKRT_ERROR_INPUT, b"%s %lld: expected a DeviceBuffer of %s bytes or "
                    b"more, got %s", label, <long long>number,
                    grouped(tensor.nbytes, expected), grouped(buffer.nbytes, had))
    return VKRT_OK


cdef int fail_overlap(const Search* search, int64_t number, int64_t other,
                      Error* error) noexcept nogil:
    cdef const Span* one = search.tensors + other
    cdef const Span* two = search.tensors + number
    cdef char[4][GROUPED] texts
    return fail(error, VKRT_ERROR_INPUT, b"out %lld: expected a part of a VkBuffer that no other "
                b"output has; its %s bytes at %s and the %s of out %lld at %s of the same VkBuffer "
                b"overlap", <long long>number, grouped(two.nbytes, texts[0]),
                grouped(two.first, texts[1]), grouped(one.nbytes, texts[2]), <long long>other,
                grouped(one.first, texts[3]))


cdef bint fits(const Search* search, const HostArrayRow* array,
               const ExternalBuffer* buffer) noexcept nogil:
    """Whether a buffer can stand for the storage of an array, as far as bytes go."""
    cdef const StorageRow* storage = (search.records.storage + search.plan.storages.first
                                      + array.range.storage)
    return (array.range.offset == 0 and array.range.nbytes == storage.nbytes
            and not storage.extents.is_there and <uint64_t>storage.nbytes <= buffer.nbytes
            and buffer.offset % search.alignment == 0)


cdef void put_place(Search* search, const HostArrayRow* array,
                    const ExternalBuffer* buffer) noexcept nogil:
    cdef IOBinding* binding = &search.found.binding
    search.found.places[binding.in_place_count] = ExternalPlace(array.range.storage, buffer[0])
    binding.in_place_count += 1
    search.flags[array.range.storage] |= PLACED


cdef void plan_output(Search* search, int64_t number, const HostArrayRow* array,
                      const ExternalBuffer* buffer) noexcept nogil:
    cdef const StorageRow* storage = (search.records.storage + search.plan.storages.first
                                      + array.range.storage)
    cdef IOBinding* binding = &search.found.binding
    cdef const Span* tensor = search.tensors + number
    cdef Span whole = Span(buffer.handle, buffer.offset, <uint64_t>storage.nbytes)
    if (storage.role == ROLE_ACTIVATION
            and not search.flags[array.range.storage] & (TOUCHED | PLACED)
            and fits(search, array, buffer)
            and not overlaps_any(&whole, search.tensors, search.plan.outputs.count, number)):
        put_place(search, array, buffer)
        # The padding behind the tensor, too
        search.changed[number] = whole
    elif tensor.nbytes > 0:
        search.found.copies_out[binding.copy_out_count] = ExternalCopy(
            array.range, buffer[0], tensor.nbytes)
        binding.copy_out_count += 1
        search.changed[number] = tensor[0]


cdef int plan_input(Search* search, int64_t number, const HostArrayRow* array,
                    const ExternalBuffer* buffer, Error* error) noexcept nogil:
    cdef const StorageRow* storage = (search.records.storage + search.plan.storages.first
                                      + array.range.storage)
    cdef IOBinding* binding = &search.found.binding
    cdef Span tensor
    if tensor_of(search.records, array, buffer, b"input", number, &tensor, error):
        return error.status
    # The padding of a buffer of the host's is not known to be zero.
    if (tensor.nbytes == <uint64_t>storage.nbytes
            and not search.flags[array.range.storage] & (TOUCHED | WRITTEN)
            and fits(search, array, buffer)
            and not overlaps_any(&tensor, search.changed, search.plan.outputs.count, -1)):
        put_place(search, array, buffer)
    elif tensor.nbytes > 0:
        search.found.copies_in[binding.copy_in_count] = ExternalCopy(
            array.range, buffer[0], tensor.nbytes)
        binding.copy_in_count += 1
    return VKRT_OK


cdef int plan_all(Search* search, const ExternalBuffer* inputs, const ExternalBuffer* outputs,
                  Error* error) noexcept nogil:
    cdef const MaybeHostArrayRow* given = (search.records.maybe_host_array
                                           + search.plan.inputs.first)
    cdef const MaybeHostArrayRow* made = (search.records.maybe_host_array
                                          + search.plan.outputs.first)
    cdef Span tensor
    cdef int64_t i, k
    for i in range(search.plan.inputs.count):
        if inputs[i].handle != VK_NULL_HANDLE and given[i].is_there and tensor_of(
                search.records, &given[i].value, inputs + i, b"input", i, &tensor, error):
            return error.status
    for i in range(search.plan.outputs.count):
        if outputs[i].handle == VK_NULL_HANDLE or not made[i].is_there:
            continue
        if tensor_of(search.records, &made[i].value, outputs + i, b"out", i, search.tensors + i,
                     error):
            return error.status
        for k in range(i):
            if overlaps(search.tensors + i, search.tensors + k):
                return fail_overlap(search, i, k, error)
    for i in range(search.plan.outputs.count):
        if search.tensors[i].handle != VK_NULL_HANDLE:
            plan_output(search, i, &made[i].value, outputs + i)
    for i in range(search.plan.inputs.count):
        if inputs[i].handle != VK_NULL_HANDLE and given[i].is_there and plan_input(
                search, i, &given[i].value, inputs + i, error):
            return error.status
    return VKRT_OK


cdef int plan_external(const Records* records, const ExecutionPlanRow* plan, uint64_t alignment,
                       const ExternalBuffer* inputs, const ExternalBuffer* outputs,
                       ExternalPlan* found, Error* error) noexcept nogil:
    cdef size_t given = <size_t>plan.inputs.count
    cdef size_t made = <size_t>plan.outputs.count
    cdef Search search
    cdef int status
    memset(found, 0, sizeof(found[0]))
    memset(&search, 0, sizeof(search))
    search.found, search.records, search.plan = found, records, plan
    search.alignment = alignment
    found.places = <ExternalPlace*>calloc(given + made + 1, sizeof(ExternalPlace))
    found.copies_in = <ExternalCopy*>calloc(given + 1, sizeof(ExternalCopy))
    found.copies_out = <ExternalCopy*>calloc(made + 1, sizeof(ExternalCopy))
    search.flags = <char*>calloc(<size_t>plan.storages.count + 1, 1)
    search.tensors = <Span*>calloc(made + 1, sizeof(Span))
    search.changed = <Span*>calloc(made + 1, sizeof(Span))
    if (found.places == NULL or found.copies_in == NULL or found.copies_out == NULL
            or search.flags == NULL or search.tensors == NULL or search.changed == NULL):
        status = fail(error, VKRT_ERROR_MEMORY, b"external buffers: the host is out of memory")
    else:
        flag_storages(&search)
        status = plan_all(&search, inputs, outputs, error)
    free(search.flags)
    free(search.tensors)
    free(search.changed)
    found.binding.in_place, found.binding.copies_in = found.places, found.copies_in
    found.binding.copies_out = found.copies_out
    return status


cdef void free_external_plan(ExternalPlan* found) noexcept nogil:
    free(found.places)
    free(found.copies_in)
    free(found.copies_out)
    memset(found, 0, sizeof(found[0]))


cdef uint64_t copied_bytes(const IOBinding* binding) noexcept nogil:
    cdef uint64_t nbytes = 0
    cdef int64_t i
    for i in range(binding.copy_in_count):
        nbytes += binding.copies_in[i].nbytes
    for i in range(binding.copy_out_count):
        nbytes += binding.copies_out[i].nbytes
    return nbytes
