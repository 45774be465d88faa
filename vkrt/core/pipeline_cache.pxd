"""A device's VkPipelineCache: what the driver keeps of compiled pipelines, and may save.

Lavapipe and SwiftShader keep nothing in it that could be saved (Mesa has a cache of its own); other
drivers compile most of a program's pipelines out of it in no time.
"""

from vkrt.core.device cimport Device
from vkrt.core.error cimport Error

cdef extern nogil:
    # Makes the device's cache with data that the driver has saved, unless it is there; a driver
    # that cannot is one without: pipelines are then compiled every time. Whether it was made now.
    bint make_pipeline_cache "vkrt_make_pipeline_cache"(Device* device, const void* data,
                                                        size_t size)
    # What the driver has to save, in memory that the caller frees; of no bytes (NULL) where there
    # is nothing, where it fails, or where that is too much.
    int save_pipeline_cache "vkrt_save_pipeline_cache"(const Device* device, char** data,
                                                       size_t* size, Error* error)
