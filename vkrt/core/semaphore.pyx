from libc.string cimport memset

from vkrt.core.atomic cimport atomic_take64
from vkrt.core.batch cimport SemaphoreList, submit_batch
from vkrt.core.device cimport (
    check_wait, create_child, create_handle, destroy_child, destroy_handle, submit_to,
)
from vkrt.core.error cimport VKRT_ERROR_CLOSED, VKRT_ERROR_UNSUPPORTED, VKRT_OK, fail, need
from vkrt.core.features cimport has_feature
from vkrt.core.fence cimport wait_for_fence
from vkrt.core.live cimport FENCE, SEMAPHORE
from vkrt.core.results cimport check_result
from vkrt.core.threads cimport pthread_mutex_lock, pthread_mutex_unlock
from vkrt.core.vulkan cimport *

cdef enum:
    # Nanoseconds of a wait at a time
    SLICE = 100_000_000
    # Seconds; other programs of the device may be at work.
    DRAINED_WITHIN = 10


cdef int make_timeline(Device* device, TimelineSemaphore* semaphore, Error* error) noexcept nogil:
    cdef VkSemaphoreTypeCreateInfo kind
    cdef VkSemaphoreCreateInfo info
    memset(semaphore, 0, sizeof(semaphore[0]))
    if not has_feature(device.features, b"timeline") or device.vk.vkWaitSemaphores == NULL:
        return fail(error, VKRT_ERROR_UNSUPPORTED, b"%s has no timeline semaphores (the feature "
                    b"timelineSemaphore of Vulkan 1.2 or VK_KHR_timeline_semaphore; of an adopted "
                    b"device among the `features`)", device.name)
    clear_struct(&kind, VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO)
    kind.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE
    clear_struct(&info, VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO)
    info.pNext = &kind
    semaphore.device = device
    return create_child(device, SEMAPHORE, &info, &semaphore.handle, error)


# Waits until the driver has turned to a later submission than those of before.
#
# Mesa up to 23 at least signals a submission's fence first, and then looks at its semaphores once
# more, in a thread of its own: a semaphore that is destroyed when the fence is signaled is memory
# that this thread still reads, and the queue may stand still for good. A submission of nothing
# comes after all that.
cdef void drain(Device* device, VkQueue queue) noexcept nogil:
    cdef VkFenceCreateInfo info
    cdef VkSubmitInfo nothing
    cdef Error error  # nothing is destroyed on a device that was given up, and a lost one is done
    cdef Fence fence
    cdef bint done = False
    if device.calls.inherited:
        return  # the queue is the parent's
    clear_struct(&info, VK_STRUCTURE_TYPE_FENCE_CREATE_INFO)
    # No child of the device, which may be closed already: the semaphore keeps it there.
    fence.device = device
    if create_handle(device, FENCE, &info, &fence.handle, &error):
        return  # A device that failed is done with everything.
    clear_struct(&nothing, VK_STRUCTURE_TYPE_SUBMIT_INFO)
    if submit_to(device, queue, &nothing, fence.handle, &error) == VKRT_OK:
        wait_for_fence(&fence, <uint64_t>DRAINED_WITHIN * 1_000_000_000, &done, &error)
    destroy_handle(device, FENCE, &fence.handle)


cdef void close_timeline(TimelineSemaphore* semaphore) noexcept nogil:
    cdef Device* device = semaphore.device
    cdef VkSemaphore handle = atomic_take64(&semaphore.handle)
    if handle == VK_NULL_HANDLE:
        return
    if semaphore.on_compute:
        drain(device, device.queue)
    if semaphore.on_upload and not (semaphore.on_compute and device.upload_queue == device.queue):
        drain(device, device.upload_queue)
    destroy_child(device, SEMAPHORE, &handle)


cdef int check_open(const TimelineSemaphore* semaphore, Error* error) noexcept nogil:
    if semaphore.handle == VK_NULL_HANDLE:
        return fail(error, VKRT_ERROR_CLOSED, b"the timeline semaphore is closed")
    return VKRT_OK


cdef int wait_for_value(const TimelineSemaphore* semaphore, uint64_t value, uint64_t timeout,
                        bint* reached, Error* error) noexcept nogil:
    cdef VkSemaphoreWaitInfo info
    cdef Device* device = semaphore.device
    cdef int failures = 0
    cdef int result
    reached[0] = False
    if check_open(semaphore, error):
        return error.status
    clear_struct(&info, VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO)
    info.semaphoreCount = 1
    info.pSemaphores = &semaphore.handle
    info.pValues = &value
    while True:
        result = device.vk.vkWaitSemaphores(device.handle, &info, timeout)
        if result >= 0:
            reached[0] = result == VK_SUCCESS
            return VKRT_OK
        if check_wait(device, result, &failures, b"vkWaitSemaphores", error):
            return error.status


cdef int finish_value(const TimelineSemaphore* semaphore, uint64_t value,
                      Error* error) noexcept nogil:
    cdef bint reached = False
    # In slices: another thread may give the device up, and this wait would have no end.
    while not reached:
        if wait_for_value(semaphore, value, SLICE, &reached, error):
            return error.status
    return VKRT_OK


cdef int raise_timeline(const TimelineSemaphore* semaphore, uint64_t value,
                        Error* error) noexcept nogil:
    cdef VkSemaphoreSignalInfo info
    cdef Device* device = semaphore.device
    cdef int result
    cdef bint alone
    if check_open(semaphore, error):
        return error.status
    clear_struct(&info, VK_STRUCTURE_TYPE_SEMAPHORE_SIGNAL_INFO)
    info.semaphore = semaphore.handle
    info.value = value
    # Vulkan lets one thread signal while another one submits. Validation layers that follow
    # timeline semaphores from submission to submission corrupt their own memory then, until March
    # 2026 (KhronosGroup/Vulkan-ValidationLayers, fixed by 11931): under validation one waits.
    # In a forked child a thread of the parent may have held the lock.
    alone = device.instance.messenger != VK_NULL_HANDLE and not device.calls.inherited
    if alone:
        pthread_mutex_lock(device.queue_lock)
    result = device.vk.vkSignalSemaphore(device.handle, &info)
    if alone:
        pthread_mutex_unlock(device.queue_lock)
    return check_result(result, b"vkSignalSemaphore", error)


cdef void note_use(TimelineSemaphore* semaphore, bint upload) noexcept nogil:
    if upload:
        semaphore.on_upload = True
    else:
        semaphore.on_compute = True


cdef int submit_in_order(const CommandBuffer* commands, TimelineSemaphore* before,
                         uint64_t before_value, TimelineSemaphore* after, uint64_t after_value,
                         bint upload, const Fence* fence, Error* error) noexcept nogil:
    cdef SemaphoreList waits
    cdef SemaphoreList signals
    cdef VkFlags stage = VK_PIPELINE_STAGE_ALL_COMMANDS_BIT
    if need(after.handle != VK_NULL_HANDLE, error):
        return error.status
    signals = SemaphoreList(1, &after.handle, &after_value, &stage, True, False)
    note_use(after, upload)
    if before != NULL:
        waits = SemaphoreList(1, &before.handle, &before_value, &stage, True, False)
        note_use(before, upload)
    return submit_batch(commands.device, upload, commands, &waits if before != NULL else NULL,
                        &signals, fence, error)
