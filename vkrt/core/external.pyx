from libc.stdlib cimport calloc, free
from libc.string cimport memset

from vkrt.core.batch cimport submit_batch
from vkrt.core.command cimport (
    barrier, begin_commands, close_command_buffer, copy_buffer, end_commands, fill_buffer,
    make_command_buffer,
)
from vkrt.core.error cimport VKRT_ERROR_MEMORY, VKRT_OK, fail
from vkrt.core.handles cimport buffer_of, place_handle
from vkrt.core.resource cimport check_range, adopt_buffer
from vkrt.core.vulkan cimport (
    VK_ACCESS_HOST_WRITE_BIT, VK_ACCESS_SHADER_WRITE_BIT, VK_ACCESS_TRANSFER_READ_BIT,
    VK_ACCESS_TRANSFER_WRITE_BIT, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_PIPELINE_STAGE_HOST_BIT,
    VK_PIPELINE_STAGE_TRANSFER_BIT, VkFlags,
)


cdef int use_buffer(Buffer* buffer, Device* device, const ExternalBuffer* external,
                    Error* error) noexcept nogil:
    return adopt_buffer(buffer, device, external.handle, external.offset + external.nbytes, error)


cdef int place_external(ExternalIO* external, Handles* handles, const IOBinding* binding,
                        Error* error) noexcept nogil:
    cdef const ExternalPlace* place
    cdef int64_t i
    memset(external, 0, sizeof(external[0]))
    external.device = handles.device
    if binding == NULL:
        return VKRT_OK
    external.buffers = <Buffer*>calloc(<size_t>binding.in_place_count + 1, sizeof(Buffer))
    if external.buffers == NULL:
        return fail(error, VKRT_ERROR_MEMORY, b"external buffers: the host is out of memory")
    for i in range(binding.in_place_count):
        place = binding.in_place + i
        if use_buffer(&external.buffers[i], handles.device, &place.buffer, error):
            return error.status
        place_handle(handles, place.storage, &external.buffers[i], place.buffer.offset)
    return VKRT_OK


cdef void before_copies(const CommandBuffer* commands, VkFlags access) noexcept nogil:
    """What was done before, by whichever stage, comes before copies that access memory so."""
    barrier(commands,
            VK_PIPELINE_STAGE_HOST_BIT | VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT
            | VK_PIPELINE_STAGE_TRANSFER_BIT,
            VK_ACCESS_HOST_WRITE_BIT | VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT,
            VK_PIPELINE_STAGE_TRANSFER_BIT, access)


cdef int record_copy(const CommandBuffer* commands, const Handles* handles,
                     const ExternalCopy* copy, bint goes_in, Error* error) noexcept nogil:
    cdef Buffer outside
    cdef uint64_t offset
    cdef const Buffer* inside = buffer_of(handles, &copy.range, &offset)
    # The struct of an adopted buffer holds nothing that would have to be released.
    if (use_buffer(&outside, handles.device, &copy.buffer, error)
            or check_range(&outside, copy.buffer.offset, copy.nbytes, error)
            or check_range(inside, offset, copy.nbytes, error)):
        return error.status
    if goes_in:
        copy_buffer(commands, outside.handle, copy.buffer.offset, inside.handle, offset,
                    copy.nbytes)
    else:
        copy_buffer(commands, inside.handle, offset, outside.handle, copy.buffer.offset,
                    copy.nbytes)
    return VKRT_OK


cdef void clear_padding(const CommandBuffer* commands, const Handles* handles,
                        const ExternalCopy* copy) noexcept nogil:
    """Kernels take the rest of the last texel to be zero. Words are filled, and the last of them
    may have elements too."""
    cdef uint64_t offset
    cdef const Buffer* buffer = buffer_of(handles, &copy.range, &offset)
    cdef uint64_t whole = <uint64_t>copy.range.nbytes
    cdef uint64_t padding = copy.nbytes & ~<uint64_t>3
    if padding < whole:
        fill_buffer(commands, buffer.handle, offset + padding, whole - padding, 0)


cdef int record_copies(CommandBuffer* commands, const Handles* handles, const ExternalCopy* copies,
                       int64_t number, bint goes_in, CommandPool* pool,
                       Error* error) noexcept nogil:
    cdef int64_t i
    if number == 0:
        return VKRT_OK
    if make_command_buffer(pool, commands, error) or begin_commands(commands, False, error):
        return error.status
    if goes_in:
        # Runs of before are done with this memory.
        before_copies(commands, VK_ACCESS_TRANSFER_WRITE_BIT)
        for i in range(number):
            clear_padding(commands, handles, copies + i)
        before_copies(commands, VK_ACCESS_TRANSFER_WRITE_BIT)
    else:
        before_copies(commands, VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT)
    for i in range(number):
        if record_copy(commands, handles, copies + i, goes_in, error):
            return error.status
    return end_commands(commands, error)


cdef int record_external(const Handles* handles, const IOBinding* binding, CommandPool* pool,
                         ExternalIO* external, Error* error) noexcept nogil:
    if binding == NULL:
        return VKRT_OK
    return (record_copies(&external.copy_in, handles, binding.copies_in, binding.copy_in_count,
                          True, pool, error)
            or record_copies(&external.copy_out, handles, binding.copies_out,
                             binding.copy_out_count, False, pool, error))


cdef const CommandBuffer* recorded(const CommandBuffer* commands) noexcept nogil:
    return commands if commands.handle != NULL else NULL


cdef int begin_external(ExternalIO* external, const SemaphoreList* waits,
                        Error* error) noexcept nogil:
    cdef const CommandBuffer* commands = recorded(&external.copy_in)
    if commands == NULL and waits == NULL:
        return VKRT_OK
    return submit_batch(external.device, False, commands, waits, NULL, NULL, error)


cdef int end_external(ExternalIO* external, const SemaphoreList* signals, const Fence* fence,
                      Error* error) noexcept nogil:
    return submit_batch(external.device, False, recorded(&external.copy_out), NULL, signals, fence,
                        error)


cdef void close_external(ExternalIO* external) noexcept nogil:
    close_command_buffer(&external.copy_in)
    close_command_buffer(&external.copy_out)
    # The structs alone: the buffers are the host's.
    free(external.buffers)
    memset(external, 0, sizeof(external[0]))
