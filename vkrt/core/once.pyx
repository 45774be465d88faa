from libc.string cimport memset

from vkrt.core.command cimport (
    close_command_buffer, close_command_pool, end_commands, make_command_buffer, make_command_pool,
)
from vkrt.core.error cimport VKRT_OK
from vkrt.core.fence cimport WITHOUT_END, close_fence, make_fence, submit, wait_for_fence


cdef int open_once(Device* device, Once* once, Error* error) noexcept nogil:
    memset(once, 0, sizeof(once[0]))
    if (make_command_pool(device, False, &once.pool, error)
            or make_command_buffer(&once.pool, &once.commands, error)
            or make_fence(device, &once.fence, error)):
        close_once(once)
        return error.status
    return VKRT_OK


cdef void close_once(Once* once) noexcept nogil:
    close_fence(&once.fence)
    close_command_buffer(&once.commands)
    close_command_pool(&once.pool)
    memset(once, 0, sizeof(once[0]))


cdef int carry_out(Once* once, Error* error) noexcept nogil:
    cdef bint done = False
    if end_commands(&once.commands, error) or submit(&once.commands, &once.fence, error):
        return error.status
    return wait_for_fence(&once.fence, WITHOUT_END, &done, error)
