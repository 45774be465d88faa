# cython: language_level=3
"""A device's VkPipelineCache and its file, see `vkrt.core.pipeline_cache`."""

from libc.stdlib cimport free

from vkrt.core.error cimport Error
from vkrt.core.pipeline_cache cimport make_pipeline_cache, save_pipeline_cache
from vkrt.vk.check cimport check_status
from vkrt.vk.device cimport Device

from vkrt.vk import cache_data, cache_file


cdef int open_cache(Device device) except -1:
    """Makes the device's cache, filled from its file, unless it is there; the device is open."""
    cdef bytes data = b""
    cdef const char* bytes_of_data
    if device.core.pipeline_cache != NULL or device.pipeline_cache_option == "off":
        return 0
    identity = cache_file.identity_of(device.info)
    path = cache_file.path_of(device.pipeline_cache_option, identity)
    if path is not None:
        data = cache_data.read(path, identity)
    bytes_of_data = data
    if make_pipeline_cache(&device.core, bytes_of_data, len(data)):
        device.pipeline_cache_saved = data
    return 0


def save(Device device not None):
    """Saves the device's cache where its option says, if there is something new in it.

    Returns:
        Whether a file was written.
    """
    if device.core.pipeline_cache == NULL or device.core.handle == NULL:
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
    if data == device.pipeline_cache_saved or not (named or cache_data.has_pipelines(data)):
        return False
    device.pipeline_cache_saved = data
    return cache_file.write(path, identity, data)


cdef bytes _data(Device device):
    """What the driver has to save."""
    cdef Error error
    cdef char* data
    cdef size_t size
    check_status(save_pipeline_cache(&device.core, &data, &size, &error), &error)
    try:
        return data[:size] if size else b""
    finally:
        free(data)
