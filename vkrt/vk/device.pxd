"""A Vulkan device with one compute queue."""

cimport cython

from vkrt.core.cache_file cimport CacheOwner
from vkrt.core.device cimport Device as CoreDevice
from vkrt.core.pipeline_file cimport PipelineFile

# The host's own functions that begin and end the use of its queue
ctypedef void (*HostLock)(void* data) noexcept nogil

cdef struct HostFunctions:
    HostLock lock
    HostLock unlock
    void* data


@cython.final
cdef class Device:
    # Its children hold the object, in which the core's device is.
    cdef CoreDevice core
    # DeviceInfo, and the names of the enabled features
    cdef readonly object info
    cdef readonly frozenset features
    # Where pipelines are saved: "auto", "off" or a path
    cdef readonly object pipeline_cache_option
    cdef PipelineFile pipelines
    # What compiled pipelines fit
    cdef CacheOwner owner
    # What programs on the device share, for `vkrt.runtime.pipelines`
    cdef object shared
    # Of the host whose queue it is: a context manager, or functions and what they are given
    cdef object host_lock
    cdef HostFunctions host_functions

    cdef int set_host_lock(self, lock) except -1
    # What an opened and an adopted device have in common
    cdef int started(self, info) except -1
