from vkrt.core.device cimport check_wait, create_child, destroy_child, submit_to
from vkrt.core.error cimport VKRT_ERROR_CANCELLED, VKRT_OK, fail, need
from vkrt.core.live cimport FENCE
from vkrt.core.results cimport check_result
from vkrt.core.vulkan cimport *

cdef enum:
    # Nanoseconds of a wait between two looks at `poll`
    SLICE = 100_000_000


cdef int make_fence(Device* device, Fence* fence, Error* error) noexcept nogil:
    cdef VkFenceCreateInfo info
    clear_struct(&info, VK_STRUCTURE_TYPE_FENCE_CREATE_INFO)
    fence.device = device
    return create_child(device, FENCE, &info, &fence.handle, error)


cdef void close_fence(Fence* fence) noexcept nogil:
    destroy_child(fence.device, FENCE, &fence.handle)


cdef int reset_fence(const Fence* fence, Error* error) noexcept nogil:
    if need(fence.handle != VK_NULL_HANDLE, error):
        return error.status
    return check_result(fence.device.vk.vkResetFences(fence.device.handle, 1, &fence.handle),
                        b"vkResetFences", error)


cdef int submit(const CommandBuffer* commands, const Fence* fence, Error* error) noexcept nogil:
    cdef VkSubmitInfo info
    if need(commands.handle != NULL, error) or reset_fence(fence, error):
        return error.status
    clear_struct(&info, VK_STRUCTURE_TYPE_SUBMIT_INFO)
    info.commandBufferCount = 1
    info.pCommandBuffers = &commands.handle
    return submit_to(commands.device, commands.device.queue, &info, fence.handle, error)


cdef int wait_for_fence(const Fence* fence, uint64_t timeout, bint* done,
                        Error* error) noexcept nogil:
    cdef int failures = 0
    cdef int result
    done[0] = False
    if need(fence.handle != VK_NULL_HANDLE, error):
        return error.status
    while True:
        result = fence.device.vk.vkWaitForFences(fence.device.handle, 1, &fence.handle, 1, timeout)
        if result >= 0:
            done[0] = result == VK_SUCCESS
            return VKRT_OK
        if check_wait(fence.device, result, &failures, b"vkWaitForFences", error):
            return error.status


cdef int wait_and_poll(const Fence* fence, uint64_t timeout, Poll poll, void* data, bint* done,
                       Error* error) noexcept nogil:
    cdef uint64_t left = timeout
    cdef uint64_t now
    while True:
        now = min(left, <uint64_t>SLICE)
        if wait_for_fence(fence, now, done, error):
            return error.status
        if done[0]:
            return VKRT_OK
        if poll != NULL and poll(data):
            return fail(error, VKRT_ERROR_CANCELLED, b"the wait for the device was ended")
        left -= 0 if timeout == WITHOUT_END else now
        if left == 0:
            return VKRT_OK
