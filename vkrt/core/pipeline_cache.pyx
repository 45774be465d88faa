from libc.stdlib cimport free, malloc

from vkrt.core.cache_file cimport MAX_CACHE_BYTES
from vkrt.core.device cimport create_handle
from vkrt.core.error cimport VKRT_ERROR_MEMORY, VKRT_OK, fail
from vkrt.core.live cimport PIPELINE_CACHE
from vkrt.core.threads cimport pthread_mutex_lock, pthread_mutex_unlock
from vkrt.core.vulkan cimport *


cdef bint make_pipeline_cache(Device* device, const void* data, size_t size) noexcept nogil:
    cdef VkPipelineCacheCreateInfo info
    cdef Error error
    cdef bint made
    clear_struct(&info, VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO)
    info.initialDataSize = size
    info.pInitialData = data if size > 0 else NULL
    if device.calls.inherited:  # a thread of the parent may have held the lock
        return False
    # Another thread may make it, too.
    pthread_mutex_lock(device.queue_lock)
    made = (device.pipeline_cache == VK_NULL_HANDLE and create_handle(
        device, PIPELINE_CACHE, &info, &device.pipeline_cache, &error) == VKRT_OK)
    pthread_mutex_unlock(device.queue_lock)
    return made


cdef int save_pipeline_cache(const Device* device, char** data, size_t* size,
                             Error* error) noexcept nogil:
    cdef size_t found = 0
    cdef char* buffer
    data[0], size[0] = NULL, 0
    if device.pipeline_cache == VK_NULL_HANDLE or device.handle == NULL:
        return VKRT_OK
    if device.vk.vkGetPipelineCacheData(device.handle, device.pipeline_cache, &found, NULL) < 0:
        return VKRT_OK
    if found == 0 or found > <size_t>MAX_CACHE_BYTES:
        return VKRT_OK
    buffer = <char*>malloc(found)
    if buffer == NULL:
        return fail(error, VKRT_ERROR_MEMORY, b"the driver's compiled pipelines (%zu bytes): the "
                    b"host is out of memory", found)
    # VK_INCOMPLETE, because another thread added something: what fits is whole in itself.
    if device.vk.vkGetPipelineCacheData(device.handle, device.pipeline_cache, &found, buffer) < 0:
        free(buffer)
        return VKRT_OK
    data[0], size[0] = buffer, found
    return VKRT_OK
