# cython: cdivision=True, boundscheck=False, wraparound=False
"""Fit: whether a method that was compiled for one device runs on another one.

What the device says of its memory is compared with what the method was planned with, and its limits
with what the commands need. Types of memory have other numbers on every device: those of the blocks
become the device's. Features are looked at when pipelines are created.
"""

from libc.stdint cimport int64_t

from vkrt.core.check cimport find_module
from vkrt.core.error cimport VKRT_ERROR_UNSUPPORTED, VKRT_OK, Error, fail
from vkrt.core.flat cimport is_text
from vkrt.core.fit cimport DeviceLimits, Requirements
from vkrt.core.records cimport (
    COMMAND_DISPATCH, BindingRow, BlockRow, CompiledMethodRow, CompiledShapeRow, DispatchCommandRow,
    ExecutableRow, ExecutionPlanRow, Integers2Row, KernelRow, Member, ModuleRow, PlaceRow,
    PrepackBatchRow, Records, Rows, StorageRow, SubmissionRecordRow, Text,
)

cdef enum:
    # The specialization constant with the invocations of a workgroup (`vkrt.work.records`)
    LOCAL_SIZE = 100
    # Invocations among which kernels hand values round (`vkrt.work.tuning`)
    LANES = 8
    # VkDescriptorType
    UNIFORM_TEXEL_BUFFER = 4
    STORAGE_BUFFER = 7

# A method and a device
cdef struct Fit:
    const Records* records
    const ExecutableRow* executable
    const DeviceLimits* limits
    int64_t* type_bits
    Error* error


cdef int fit_method(const Records* records, const CompiledMethodRow* method,
                    const DeviceLimits* limits, int64_t* type_bits, Error* error) noexcept nogil:
    """Compares a method, at all of its shapes, with a device.

    `type_bits` has an entry for every row of the table of blocks; those of the method's blocks
    become the types of memory that these may lie in.
    """
    cdef Fit f
    cdef const ExecutableRow* executable = &method.largest.executable
    cdef const CompiledShapeRow* shape = records.compiled_shape + method.others.first
    cdef const PrepackBatchRow* batch = (records.prepack_batch
                                         + executable.weights.prepack.batches.first)
    cdef const StorageRow* storages = records.storage + executable.execution.storages.first
    cdef int64_t k
    f.records, f.executable, f.limits = records, executable, limits
    f.type_bits, f.error = type_bits, error
    if fit_ways(&f) or fit_kernels(&f, &executable.weights.prepack.kernels):
        return error.status
    for k in range(executable.weights.prepack.batches.count):
        if fit_commands(&f, &batch[k].commands):
            return error.status
    if (fit_blocks(&f, &executable.weights.blocks, storages)
            or fit_blocks(&f, &executable.states.blocks, storages)
            or fit_execution(&f, &executable.execution)):
        return error.status
    for k in range(method.others.count):
        if fit_execution(&f, &shape[k].execution):
            return error.status
    return VKRT_OK


cdef int fit_ways(Fit* f) noexcept nogil:
    """Whether weights can come to the device in the way that was planned."""
    if f.limits.unified and f.executable.weights.upload_bytes:
        return fail(f.error, VKRT_ERROR_UNSUPPORTED, "it streams weights through a staging buffer, "
                    "and the device's memory is the host's")
    if not f.limits.unified and f.executable.weights.written.count:
        return fail(f.error, VKRT_ERROR_UNSUPPORTED, "the host writes its weights, and the device "
                    "has memory of its own")
    if f.executable.loops > f.limits.max_loops:
        return fail(f.error, VKRT_ERROR_UNSUPPORTED, "its kernels loop %lld times, and the driver "
                    "%lld times at most", <long long>f.executable.loops,
                    <long long>f.limits.max_loops)
    return VKRT_OK


cdef int fit_execution(Fit* f, const ExecutionPlanRow* execution) noexcept nogil:
    """The commands at one shape, and the memory of its activations."""
    cdef const SubmissionRecordRow* submission = (f.records.submission_record
                                                  + execution.submissions.first)
    cdef int64_t k
    if fit_kernels(f, &execution.kernels):
        return f.error.status
    for k in range(execution.submissions.count):
        if fit_commands(f, &submission[k].commands):
            return f.error.status
    return fit_blocks(f, &execution.blocks, f.records.storage + execution.storages.first)


# Kernels and commands

cdef int fit_kernels(Fit* f, const Rows* kernels) noexcept nogil:
    cdef const KernelRow* kernel = f.records.kernel + kernels.first
    cdef const Integers2Row* pair
    cdef int64_t invocations, most, k, n
    most = min(f.limits.max_compute_work_group_invocations, f.limits.max_compute_work_group_size[0])
    for k in range(kernels.count):
        invocations = 1
        pair = f.records.integers_2 + kernel[k].constants.first
        for n in range(kernel[k].constants.count):
            if pair[n].items[0] == LOCAL_SIZE:
                invocations = pair[n].items[1]
        if not 0 < invocations <= most:
            return fail(f.error, VKRT_ERROR_UNSUPPORTED,
                        "workgroups of %lld invocations, of which the device has %lld",
                        <long long>invocations, <long long>most)
        if fit_module(f, find_module(f.records, &kernel[k].shader)):
            return f.error.status
    return VKRT_OK


cdef int fit_module(Fit* f, const ModuleRow* module) noexcept nogil:
    cdef const Text* capability = f.records.text + module.capabilities.first
    cdef int64_t k
    if module.push_bytes > f.limits.max_push_constants_size:
        return fail(f.error, VKRT_ERROR_UNSUPPORTED, "%.*s takes %lld bytes of push constants",
                    <int>min(module.name.count, <int64_t>100),
                    f.records.texts + module.name.first, <long long>module.push_bytes)
    if f.executable.shared_bytes > f.limits.max_compute_shared_memory_size:
        return fail(f.error, VKRT_ERROR_UNSUPPORTED,
                    "its kernels may share %lld bytes in a workgroup",
                    <long long>f.executable.shared_bytes)
    for k in range(module.capabilities.count):
        if f.limits.subgroup_size < LANES and is_text(f.records, capability + k,
                                                      "GroupNonUniformShuffle"):
            return fail(f.error, VKRT_ERROR_UNSUPPORTED, "%.*s needs subgroups of %d invocations",
                        <int>min(module.name.count, <int64_t>100),
                        f.records.texts + module.name.first, LANES)
    return VKRT_OK


cdef int fit_commands(Fit* f, const Rows* commands) noexcept nogil:
    cdef const Member* command = f.records.command + commands.first
    cdef const DispatchCommandRow* dispatch
    cdef int64_t k, n
    for k in range(commands.count):
        if command[k].which != COMMAND_DISPATCH:
            continue
        dispatch = f.records.dispatch_command + command[k].row
        for n in range(3):
            if dispatch.groups[n] > f.limits.max_compute_work_group_count[n]:
                return fail(f.error, VKRT_ERROR_UNSUPPORTED,
                            "a dispatch of %lld x %lld x %lld workgroups",
                            <long long>dispatch.groups[0], <long long>dispatch.groups[1],
                            <long long>dispatch.groups[2])
        for n in range(dispatch.bindings.count):
            if fit_binding(f, f.records.binding + dispatch.bindings.first + n):
                return f.error.status
    return VKRT_OK


cdef int64_t texel_bytes(int64_t format) noexcept nogil:
    """Bytes of a texel of a VkFormat that views have; 0 of none."""
    if format in (108, 109):
        return 16
    if format in (95, 97):
        return 8
    return 4 if format in (41, 42) else 0


cdef int fit_binding(Fit* f, const BindingRow* binding) noexcept nogil:
    cdef int64_t nbytes = binding.range.nbytes, most, alignment, texel = 1
    if binding.type == STORAGE_BUFFER:
        most = f.limits.max_storage_buffer_range
        alignment = f.limits.min_storage_buffer_offset_alignment
    elif binding.type == UNIFORM_TEXEL_BUFFER:
        most = f.limits.max_texel_buffer_elements
        alignment = f.limits.min_texel_buffer_offset_alignment
        texel = texel_bytes(binding.format)
    else:
        return VKRT_OK
    if texel == 0 or nbytes // texel > most or binding.range.offset % max(alignment, <int64_t>1):
        return fail(f.error, VKRT_ERROR_UNSUPPORTED,
                    "a kernel reads %lld bytes at %lld of a buffer, and the device %lld at most, "
                    "at multiples of %lld", <long long>nbytes, <long long>binding.range.offset,
                    <long long>most, <long long>alignment)
    return VKRT_OK


# Memory

cdef int fit_blocks(Fit* f, const Rows* blocks, const StorageRow* storages) noexcept nogil:
    cdef const BlockRow* block = f.records.block + blocks.first
    cdef int64_t k
    for k in range(blocks.count):
        if fit_block(f, block + k, storages, f.type_bits + blocks.first + k):
            return f.error.status
    return VKRT_OK


cdef int fit_block(Fit* f, const BlockRow* block, const StorageRow* storages,
                   int64_t* type_bits) noexcept nogil:
    """Whether the device allocates a block and has room at its places, in memory of some type."""
    cdef const PlaceRow* place = f.records.place + block.places.first
    cdef Requirements needed
    cdef bint has_buffers = False, has_images = False
    cdef int64_t granularity = f.executable.granularity, _
    if block.nbytes > f.limits.max_memory_allocation_size:
        return fail(f.error, VKRT_ERROR_UNSUPPORTED,
                    "it allocates %lld bytes at once, and the device %lld at most",
                    <long long>block.nbytes, <long long>f.limits.max_memory_allocation_size)
    type_bits[0] = 0xFFFFFFFF
    for _ in range(block.places.count):
        if storages[place.storage].extents.is_there:
            has_images = True
        else:
            has_buffers = True
        if f.limits.requirements_of(f.limits.data, storages + place.storage, &needed, f.error):
            return f.error.status
        if needed.nbytes > place.nbytes or place.offset % max(needed.alignment, <int64_t>1) \
                or block.alignment % max(needed.alignment, <int64_t>1):
            return fail(f.error, VKRT_ERROR_UNSUPPORTED, "it has %lld bytes at %lld where the "
                        "device asks for %lld at multiples of %lld", <long long>place.nbytes,
                        <long long>place.offset, <long long>needed.nbytes,
                        <long long>needed.alignment)
        type_bits[0] &= needed.type_bits
        place += 1
    if has_buffers and has_images \
            and granularity % max(f.limits.buffer_image_granularity, <int64_t>1):
        return fail(f.error, VKRT_ERROR_UNSUPPORTED, "buffers and images are %lld bytes apart "
                    "where the device asks for %lld (bufferImageGranularity)",
                    <long long>granularity, <long long>f.limits.buffer_image_granularity)
    if type_bits[0] == 0:
        return fail(f.error, VKRT_ERROR_UNSUPPORTED,
                    "the device has no memory that all of a block may lie in")
    return VKRT_OK
