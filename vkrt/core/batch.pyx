from libc.stdlib cimport calloc, free
from libc.string cimport memset

from vkrt.core.device cimport submit_to
from vkrt.core.features cimport has_feature
from vkrt.core.error cimport VKRT_ERROR_MEMORY, VKRT_ERROR_UNSUPPORTED, VKRT_OK, fail, need
from vkrt.core.fence cimport reset_fence
from vkrt.core.vulkan cimport *


cdef int make_semaphore_list(uint32_t size, SemaphoreList* semaphores,
                             Error* error) noexcept nogil:
    memset(semaphores, 0, sizeof(semaphores[0]))
    semaphores.size = size
    semaphores.handles = <VkSemaphore*>calloc(size + 1, sizeof(VkSemaphore))
    semaphores.values = <uint64_t*>calloc(size + 1, sizeof(uint64_t))
    semaphores.stages = <VkFlags*>calloc(size + 1, sizeof(VkFlags))
    if semaphores.handles == NULL or semaphores.values == NULL or semaphores.stages == NULL:
        free_semaphore_list(semaphores)
        return fail(error, VKRT_ERROR_MEMORY, b"%u semaphores: the host is out of memory", size)
    return VKRT_OK


cdef void free_semaphore_list(SemaphoreList* semaphores) noexcept nogil:
    free(semaphores.handles)
    free(semaphores.values)
    free(semaphores.stages)
    memset(semaphores, 0, sizeof(semaphores[0]))


cdef int put_semaphore(const Device* device, SemaphoreList* semaphores, uint32_t index,
                       VkSemaphore handle, const uint64_t* value, Error* error) noexcept nogil:
    semaphores.handles[index] = handle
    semaphores.stages[index] = VK_PIPELINE_STAGE_ALL_COMMANDS_BIT
    if value == NULL:
        semaphores.has_binary = True
        return VKRT_OK
    semaphores.values[index] = value[0]
    semaphores.has_timeline = True
    if not has_feature(device.features, b"timeline"):
        return fail(error, VKRT_ERROR_UNSUPPORTED, b"%s: a semaphore with a value takes timeline "
                    b"semaphores (the feature timelineSemaphore; of an adopted device among the "
                    b"`features`)", device.name)
    return VKRT_OK


cdef int submit_batch(Device* device, bint upload, const CommandBuffer* commands,
                      const SemaphoreList* waits, const SemaphoreList* signals,
                      const Fence* fence, Error* error) noexcept nogil:
    cdef VkTimelineSemaphoreSubmitInfo values
    cdef VkSubmitInfo info
    cdef VkFence signaled = VK_NULL_HANDLE
    clear_struct(&info, VK_STRUCTURE_TYPE_SUBMIT_INFO)
    clear_struct(&values, VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO)
    if commands != NULL:
        if need(commands.handle != NULL, error):
            return error.status
        info.commandBufferCount = 1
        info.pCommandBuffers = &commands.handle
    if waits != NULL:
        info.waitSemaphoreCount = values.waitSemaphoreValueCount = waits.size
        info.pWaitSemaphores = waits.handles
        info.pWaitDstStageMask = waits.stages
        values.pWaitSemaphoreValues = waits.values
    if signals != NULL:
        info.signalSemaphoreCount = values.signalSemaphoreValueCount = signals.size
        info.pSignalSemaphores = signals.handles
        values.pSignalSemaphoreValues = signals.values
    # Where there are none, the extension that brings the struct may not be there either.
    if waits != NULL and waits.has_timeline or signals != NULL and signals.has_timeline:
        info.pNext = &values
    if fence != NULL:
        if reset_fence(fence, error):
            return error.status
        signaled = fence.handle
    return submit_to(device, device.upload_queue if upload else device.queue, &info, signaled,
                     error)
