"""Submissions that wait for semaphores and signal them."""

from libc.stdint cimport uint32_t, uint64_t

from vkrt.core.command cimport CommandBuffer
from vkrt.core.device cimport Device
from vkrt.core.error cimport Error
from vkrt.core.fence cimport Fence
from vkrt.core.vulkan cimport VkFlags, VkSemaphore

# Semaphores in the form that a submission takes them
cdef struct SemaphoreList:
    uint32_t size
    VkSemaphore* handles
    # Of timeline semaphores; those of binary ones are not looked at.
    uint64_t* values
    VkFlags* stages
    bint has_timeline
    bint has_binary

cdef extern nogil:
    # Room for so many, each of which `put_semaphore` puts there
    int make_semaphore_list "vkrt_make_semaphore_list"(uint32_t size, SemaphoreList* semaphores,
                                                       Error* error)
    void free_semaphore_list "vkrt_free_semaphore_list"(SemaphoreList* semaphores)
    # value: of a timeline semaphore, which the device may not have; NULL for a binary one
    int put_semaphore "vkrt_put_semaphore"(const Device* device, SemaphoreList* semaphores,
                                           uint32_t index, VkSemaphore handle,
                                           const uint64_t* value, Error* error)
    # Submits commands (NULL: nothing) to the compute queue, or the queue for copies, which begin
    # once the first semaphores are signaled and signal the others when they and all submissions of
    # before are done. Then `fence`, which is reset before, is signaled too. Each of them may be
    # NULL.
    int submit_batch "vkrt_submit_batch"(Device* device, bint upload, const CommandBuffer* commands,
                                         const SemaphoreList* waits, const SemaphoreList* signals,
                                         const Fence* fence, Error* error)
