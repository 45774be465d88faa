from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcpy, memset

from vkrt.core.block cimport Block, free_block, invalidate_block
from vkrt.core.command cimport barrier, begin_commands, copy_buffer, device_to_host
from vkrt.core.error cimport VKRT_OK
from vkrt.core.formats cimport BUFFER_USAGE
from vkrt.core.handles cimport buffer_of, copy_from_range, host_address
from vkrt.core.memory_types cimport MEMORY_READBACK
from vkrt.core.once cimport Once, carry_out, close_once, open_once
from vkrt.core.records cimport StateTensorRow
from vkrt.core.resource cimport COMPUTE_ONLY, Buffer, close_buffer, make_buffer_and_block
from vkrt.core.states cimport write_state
from vkrt.core.vulkan cimport (
    VK_ACCESS_SHADER_WRITE_BIT, VK_ACCESS_TRANSFER_READ_BIT, VK_ACCESS_TRANSFER_WRITE_BIT,
    VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_PIPELINE_STAGE_TRANSFER_BIT,
)

cdef enum:
    # Read at a time from memory that the host does not see
    PIECE = 65536


# A small buffer that the host sees
cdef struct Window:
    Buffer buffer
    Block block
    Once once


cdef int open_window(Window* window, States* states, Error* error) noexcept nogil:
    memset(window, 0, sizeof(window[0]))
    return (open_once(states.handles.device, &window.once, error)
            or make_buffer_and_block(states.blocks.allocator, PIECE, BUFFER_USAGE, COMPUTE_ONLY,
                                     MEMORY_READBACK, &window.buffer, &window.block, error))


cdef void close_window(Window* window) noexcept nogil:
    close_once(&window.once)
    close_buffer(&window.buffer)
    free_block(&window.block)


cdef int read_piece(Window* window, const Buffer* source, uint64_t offset, char* target,
                    size_t nbytes, Error* error) noexcept nogil:
    if begin_commands(&window.once.commands, True, error):
        return error.status
    barrier(&window.once.commands,
            VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT,
            VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT,
            VK_PIPELINE_STAGE_TRANSFER_BIT,
            VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT)
    copy_buffer(&window.once.commands, source.handle, offset, window.buffer.handle, 0,
                (nbytes + 3) // 4 * 4)
    device_to_host(&window.once.commands)
    if carry_out(&window.once, error) or invalidate_block(&window.block, 0, nbytes, error):
        return error.status
    memcpy(target, window.block.mapped, nbytes)
    return VKRT_OK


cdef int read_state(States* states, const StateTensorRow* tensor, Window* window, char* target,
                    Error* error) noexcept nogil:
    """The value of one of them."""
    cdef uint64_t nbytes = <uint64_t>tensor.nbytes
    cdef uint64_t done = 0, offset
    cdef const Buffer* source = buffer_of(states.handles, &tensor.range, &offset)
    if host_address(states.handles, &tensor.range) != NULL:
        return copy_from_range(states.handles, &tensor.range, target, <size_t>nbytes, error)
    if window.once.fence.device == NULL and open_window(window, states, error):
        return error.status
    while done < nbytes:
        if read_piece(window, source, offset + done, target + done,
                      <size_t>min(<uint64_t>PIECE, nbytes - done), error):
            return error.status
        done += PIECE
    return VKRT_OK


cdef int save_states(States* states, char* values, Error* error) noexcept nogil:
    cdef const StateTensorRow* tensors = states.records.state_tensor + states.plan.tensors.first
    cdef Window window
    cdef int64_t i
    cdef int status = VKRT_OK
    memset(&window, 0, sizeof(window))
    for i in range(states.plan.tensors.count):
        if status == VKRT_OK:
            status = read_state(states, &tensors[i], &window, values, error)
        values += tensors[i].nbytes
    close_window(&window)
    return status


cdef int load_states(States* states, const char* values, Error* error) noexcept nogil:
    cdef const StateTensorRow* tensors = states.records.state_tensor + states.plan.tensors.first
    cdef Once once
    cdef int64_t i
    cdef int status = VKRT_OK
    states.inconsistent = True
    if open_once(states.handles.device, &once, error):
        return error.status
    for i in range(states.plan.tensors.count):
        if status == VKRT_OK:
            status = write_state(states, &tensors[i], &once, values, <size_t>tensors[i].nbytes,
                                 error)
        values += tensors[i].nbytes
    close_once(&once)
    states.inconsistent = status != VKRT_OK
    return status
