from libc.stdint cimport int32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from vkrt.core.command cimport (
    barrier_with_images, bind_descriptors, bind_pipeline, copy_buffer, dispatch, push_constants,
)
from vkrt.core.descriptors cimport (
    close_descriptor_pool, make_descriptor_pool, write_buffer_descriptor, write_image_descriptor,
    write_texel_descriptor,
)
from vkrt.core.error cimport VKRT_ERROR_MEMORY, VKRT_OK, fail
from vkrt.core.handles cimport buffer_of, get_texel_view
from vkrt.core.pipeline cimport DescriptorLayout
from vkrt.core.records cimport (
    COMMAND_BARRIER, COMMAND_COPY, COMMAND_DISPATCH, BarrierCommandRow, BindingRow, CopyCommandRow,
    DispatchCommandRow, Member, Records,
)
from vkrt.core.resource cimport Buffer, check_range, get_image_view
from vkrt.core.timestamps cimport write_timestamp
from vkrt.core.vulkan cimport (
    VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, VK_DESCRIPTOR_TYPE_UNIFORM_TEXEL_BUFFER, VkBufferView,
    VkImage, VkImageView,
)

cdef enum:
    PUSH_WORDS = 32


cdef int write_binding(Handles* handles, const BindingRow* binding, const DescriptorPool* pool,
                       uint32_t index, Error* error) noexcept nogil:
    cdef const Buffer* buffer
    cdef uint64_t offset
    cdef VkBufferView texels
    cdef VkImageView image
    cdef uint32_t number = <uint32_t>binding.number
    if binding.type == VK_DESCRIPTOR_TYPE_STORAGE_BUFFER:
        buffer = buffer_of(handles, &binding.range, &offset)
        if check_range(buffer, offset, binding.range.nbytes, error):
            return error.status
        return write_buffer_descriptor(pool, index, number, buffer.handle, offset,
                                       binding.range.nbytes, error)
    if binding.type == VK_DESCRIPTOR_TYPE_UNIFORM_TEXEL_BUFFER:
        if get_texel_view(handles, &binding.range, binding.format, &texels, error):
            return error.status
        return write_texel_descriptor(pool, index, number, texels, error)
    if get_image_view(handles.items[binding.range.storage].image, &image, error):
        return error.status
    return write_image_descriptor(pool, index, number, image, error)


cdef int write_sets(Handles* handles, const Records* records, const Rows* commands,
                    const DescriptorPool* pool, uint32_t* index, Error* error) noexcept nogil:
    """Bindings that a shader's code does not use stay unwritten."""
    cdef const Member* command
    cdef const DispatchCommandRow* row
    cdef int64_t i, k
    for i in range(commands.count):
        command = records.command + commands.first + i
        if command.which != COMMAND_DISPATCH:
            continue
        row = records.dispatch_command + command.row
        for k in range(row.bindings.first, row.bindings.first + row.bindings.count):
            if write_binding(handles, records.binding + k, pool, index[0], error):
                return error.status
        index[0] += 1
    return VKRT_OK


cdef int make_sets(Handles* handles, const Records* records, const Rows* commands,
                   const Kernel* kernels, DescriptorPool* pool, Error* error) noexcept nogil:
    cdef SubmissionRecordRow only
    memset(&only, 0, sizeof(only))
    only.commands = commands[0]
    return make_submission_sets(handles, records, &only, 1, kernels, pool, error)


cdef int make_submission_sets(Handles* handles, const Records* records,
                              const SubmissionRecordRow* submissions, int64_t number,
                              const Kernel* kernels, DescriptorPool* pool,
                              Error* error) noexcept nogil:
    cdef const DescriptorLayout** layouts
    cdef const Member* command
    cdef size_t most = 1
    cdef uint32_t count = 0
    cdef int64_t i, k
    cdef int status = VKRT_OK
    memset(pool, 0, sizeof(pool[0]))
    for i in range(number):
        most += <size_t>submissions[i].commands.count
    layouts = <const DescriptorLayout**>calloc(most, sizeof(void*))
    if layouts == NULL:
        return fail(error, VKRT_ERROR_MEMORY, b"descriptor sets: the host is out of memory")
    for i in range(number):
        for k in range(submissions[i].commands.count):
            command = records.command + submissions[i].commands.first + k
            if command.which == COMMAND_DISPATCH:
                layouts[count] = kernels[records.dispatch_command[command.row].kernel].layout
                count += 1
    if count > 0:
        status = make_descriptor_pool(handles.device, layouts, count, pool, error)
    free(layouts)
    if status != VKRT_OK or count == 0:
        return status
    count = 0
    for i in range(number):
        if write_sets(handles, records, &submissions[i].commands, pool, &count, error):
            close_descriptor_pool(pool)
            return error.status
    return VKRT_OK


cdef int record_barrier(const CommandBuffer* buffer, const Handles* handles,
                        const Records* records, const BarrierCommandRow* row,
                        Error* error) noexcept nogil:
    cdef VkImage* images = <VkImage*>calloc(<size_t>row.images.count + 1, sizeof(VkImage))
    cdef int64_t i
    cdef int status
    if images == NULL:
        return fail(error, VKRT_ERROR_MEMORY, b"a barrier: the host is out of memory")
    for i in range(row.images.count):
        images[i] = handles.items[records.integer[row.images.first + i]].image.handle
    status = barrier_with_images(
        buffer, <uint32_t>row.source_stages, <uint32_t>row.source_access, <uint32_t>row.stages,
        <uint32_t>row.access, images, <uint32_t>row.images.count, error)
    free(images)
    return status


cdef int record_copy(const CommandBuffer* buffer, const Handles* handles,
                     const CopyCommandRow* row, Error* error) noexcept nogil:
    cdef uint64_t start, offset
    cdef const Buffer* source = buffer_of(handles, &row.source, &start)
    cdef const Buffer* target = buffer_of(handles, &row.target, &offset)
    if (check_range(source, start, row.source.nbytes, error)
            or check_range(target, offset, row.source.nbytes, error)):
        return error.status
    copy_buffer(buffer, source.handle, start, target.handle, offset, row.source.nbytes)
    return VKRT_OK


cdef void record_dispatch(const CommandBuffer* buffer, const Records* records,
                          const DispatchCommandRow* row, const Kernel* kernel,
                          const DescriptorPool* pool, uint32_t index) noexcept nogil:
    """Every parameter is pushed, also those the pipeline has as constants: it keeps what the shader
    reads defined at no cost worth measuring."""
    cdef int32_t[PUSH_WORDS] pushed
    cdef int64_t i
    memset(pushed, 0, sizeof(pushed))
    for i in range(min(row.push_constants.count, <int64_t>PUSH_WORDS)):
        pushed[i] = <int32_t>records.integer[row.push_constants.first + i]
    bind_pipeline(buffer, kernel.pipeline)
    bind_descriptors(buffer, kernel.layout.pipeline_layout, pool.sets[index])
    push_constants(buffer, kernel.layout.pipeline_layout, pushed, sizeof(pushed))
    dispatch(buffer, <uint32_t>row.groups[0], <uint32_t>row.groups[1], <uint32_t>row.groups[2])


cdef int record_command(const CommandBuffer* buffer, Handles* handles, const Records* records,
                        const Member* command, const Kernel* kernels, const DescriptorPool* pool,
                        uint32_t* first, Error* error) noexcept nogil:
    cdef const DispatchCommandRow* row
    if command.which == COMMAND_BARRIER:
        return record_barrier(buffer, handles, records, records.barrier_command + command.row,
                              error)
    if command.which == COMMAND_COPY:
        return record_copy(buffer, handles, records.copy_command + command.row, error)
    row = records.dispatch_command + command.row
    record_dispatch(buffer, records, row, &kernels[row.kernel], pool, first[0])
    first[0] += 1
    return VKRT_OK


cdef int record_commands(const CommandBuffer* buffer, Handles* handles, const Records* records,
                         const Rows* commands, const Kernel* kernels, const DescriptorPool* pool,
                         uint32_t* first, StepClock* clock, Error* error) noexcept nogil:
    cdef const Member* command
    cdef bint timed
    cdef int64_t i
    for i in range(commands.count):
        command = records.command + commands.first + i
        timed = clock != NULL and command.which != COMMAND_BARRIER
        if timed:
            write_timestamp(buffer, clock.queries, 2 * clock.step)
        if record_command(buffer, handles, records, command, kernels, pool, first, error):
            return error.status
        if timed:
            write_timestamp(buffer, clock.queries, 2 * clock.step + 1)
            clock.step += 1
    return VKRT_OK
