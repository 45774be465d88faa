# cython: language_level=3

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


cdef int write_sets(Handles* handles, const Rows* commands, const DescriptorPool* pool,
                    Error* error) noexcept nogil:
    """Bindings that a shader's code does not use stay unwritten."""
    cdef const Records* records = handles.records
    cdef const Member* command
    cdef const DispatchCommandRow* row
    cdef uint32_t index = 0
    cdef int64_t i, k
    for i in range(commands.count):
        command = records.command + commands.first + i
        if command.which != COMMAND_DISPATCH:
            continue
        row = records.dispatch_command + command.row
        for k in range(row.bindings.first, row.bindings.first + row.bindings.count):
            if write_binding(handles, records.binding + k, pool, index, error):
                return error.status
        index += 1
    return VKRT_OK


cdef int make_sets(Handles* handles, const Rows* commands, const Kernel* const* kernels,
                   DescriptorPool* pool, Error* error) noexcept nogil:
    cdef const Records* records = handles.records
    cdef const DescriptorLayout** layouts
    cdef const Member* command
    cdef uint32_t number = 0
    cdef int64_t i
    cdef int status
    memset(pool, 0, sizeof(pool[0]))
    layouts = <const DescriptorLayout**>calloc(<size_t>commands.count + 1, sizeof(void*))
    if layouts == NULL:
        return fail(error, VKRT_ERROR_MEMORY, b"descriptor sets: the host is out of memory")
    for i in range(commands.count):
        command = records.command + commands.first + i
        if command.which == COMMAND_DISPATCH:
            layouts[number] = kernels[records.dispatch_command[command.row].kernel].layout
            number += 1
    status = (make_descriptor_pool(handles.device, layouts, number, pool, error) if number > 0
              else VKRT_OK)
    free(layouts)
    if status == VKRT_OK and number > 0:
        status = write_sets(handles, commands, pool, error)
        if status != VKRT_OK:
            close_descriptor_pool(pool)
    return status


cdef int record_barrier(const CommandBuffer* buffer, const Handles* handles,
                        const BarrierCommandRow* row, Error* error) noexcept nogil:
    cdef VkImage* images = <VkImage*>calloc(<size_t>row.images.count + 1, sizeof(VkImage))
    cdef int64_t i
    cdef int status
    if images == NULL:
        return fail(error, VKRT_ERROR_MEMORY, b"a barrier: the host is out of memory")
    for i in range(row.images.count):
        images[i] = handles.items[handles.records.integer[row.images.first + i]].image.handle
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
    bind_pipeline(buffer, kernel.pipeline.handle)
    bind_descriptors(buffer, kernel.layout.pipeline_layout, pool.sets[index])
    push_constants(buffer, kernel.layout.pipeline_layout, pushed, sizeof(pushed))
    dispatch(buffer, <uint32_t>row.groups[0], <uint32_t>row.groups[1], <uint32_t>row.groups[2])


cdef int record_commands(const CommandBuffer* buffer, Handles* handles, const Rows* commands,
                         const Kernel* const* kernels, const DescriptorPool* pool, uint32_t* first,
                         Error* error) noexcept nogil:
    cdef const Records* records = handles.records
    cdef const Member* command
    cdef const DispatchCommandRow* row
    cdef int64_t i
    for i in range(commands.count):
        command = records.command + commands.first + i
        if command.which == COMMAND_BARRIER:
            if record_barrier(buffer, handles, records.barrier_command + command.row, error):
                return error.status
        elif command.which == COMMAND_COPY:
            if record_copy(buffer, handles, records.copy_command + command.row, error):
                return error.status
        else:
            row = records.dispatch_command + command.row
            record_dispatch(buffer, records, row, kernels[row.kernel], pool, first[0])
            first[0] += 1
    return VKRT_OK
