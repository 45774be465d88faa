# cython: language_level=3
"""A device's VkPipelineCache: what the driver keeps of compiled pipelines, and may save.

Lavapipe and SwiftShader keep nothing in it that could be saved (Mesa has a cache of its own);
other drivers compile most of a program's pipelines out of it in no time.
"""

from libc.stdlib cimport free, malloc
from libc.string cimport memset

from vkrt.vk.api cimport *
from vkrt.vk.check cimport PIPELINE_CACHE, count
from vkrt.vk.device cimport Device

from vkrt.vk import cache_file


cdef int open_cache(Device device) except -1:
    """Makes the device's cache, filled from its file, unless it is there; the device is open.

    A driver that cannot is one without a cache: pipelines are then compiled every time.
    """
    cdef VkPipelineCacheCreateInfo info
    cdef VkPipelineCache made = NULL
    cdef bytes data = b""
    if device.pipeline_cache != NULL or device.pipeline_cache_option == "off":
        return 0
    identity = cache_file.identity_of(device.info)
    path = cache_file.path_of(device.pipeline_cache_option, identity)
    if path is not None:
        data = cache_file.read(path, identity)
    # While the file was read, another thread may have made the cache. From here on the GIL is held.
    if device.pipeline_cache != NULL:
        return 0
    memset(&info, 0, sizeof(info))
    info.sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO
    info.initialDataSize = len(data)
    info.pInitialData = <const char*>data if data else NULL
    if <int>device.vk.vkCreatePipelineCache(device.handle, &info, NULL, &made) >= 0:
        device.pipeline_cache = made
        device.pipeline_cache_saved = data
        count(PIPELINE_CACHE, 1)
    return 0


def save(Device device not None):
    """Saves the device's cache where its option says, if there is something new in it.

    Returns:
        Whether a file was written.
    """
    if device.pipeline_cache == NULL or device.handle == NULL:
        return False
    identity = cache_file.identity_of(device.info)
    path = cache_file.path_of(device.pipeline_cache_option, identity)
    if path is None:
        return False
    data = _data(device)
    if not data:
        return False
    # Where a user names a file, it is always there.
    named = device.pipeline_cache_option != "auto"
    if data == device.pipeline_cache_saved or not (named or cache_file.has_pipelines(data)):
        return False
    device.pipeline_cache_saved = data
    return cache_file.write(path, identity, data)


cdef bytes _data(Device device):
    """What the driver has to save; nothing where it fails or where that is too much."""
    cdef size_t size = 0
    cdef char* buffer
    if <int>device.vk.vkGetPipelineCacheData(device.handle, device.pipeline_cache, &size,
                                             NULL) < 0 or size > <size_t>cache_file.MAX_BYTES:
        return b""
    buffer = <char*>malloc(size + 1)
    if buffer == NULL:
        raise MemoryError
    try:
        # VK_INCOMPLETE, because another thread added something: what fits is whole in itself.
        if <int>device.vk.vkGetPipelineCacheData(device.handle, device.pipeline_cache, &size,
                                                 buffer) < 0:
            return b""
        return buffer[:size]
    finally:
        free(buffer)
