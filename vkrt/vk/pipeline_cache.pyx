"""A device's VkPipelineCache and its file, see `vkrt.core.pipeline_file`."""

import os

from libc.string cimport memcpy

from vkrt.core.error cimport Error
from vkrt.core.pipeline_file cimport (
    PipelineFile, close_pipeline_file, open_pipeline_file, save_pipelines,
)
from vkrt.core.vulkan cimport VK_NULL_HANDLE
from vkrt.vk.check cimport check_status
from vkrt.vk.device cimport Device

from vkrt.version import __version__

cdef bytes VERSION = __version__.encode()


cdef int open_cache(Device device) except -1:
    """Makes the device's cache, filled from its file, unless it is there; the device is open."""
    cdef bytes option = os.fsencode(device.pipeline_cache_option)
    cdef const char* text = option
    cdef const char* version = VERSION
    cdef PipelineFile opened
    cdef Error error
    cdef int status
    if device.core.pipeline_cache != VK_NULL_HANDLE:
        return 0
    with nogil:
        status = open_pipeline_file(&device.core, &device.owner, text, version, &opened,
                                    &error)
    check_status(status, &error)
    if device.pipelines.path == NULL:
        device.pipelines = opened
        return 0
    # Of threads that come here at once, one makes the cache: it knows what is in the file.
    if opened.saved_bytes > 0:
        device.pipelines.saved_bytes = opened.saved_bytes
        memcpy(device.pipelines.saved, opened.saved, sizeof(opened.saved))
    close_pipeline_file(&opened)
    return 0


def save(Device device not None):
    """Saves the device's cache where its option says, if there is something new in it.

    Returns:
        Whether a file was written.
    """
    cdef bint done
    with nogil:
        done = save_pipelines(&device.pipelines, &device.core)
    return bool(done)
