# cython: language_level=3
"""A Vulkan device with one compute queue."""

cimport cython
from cpython.pythread cimport PyThread_type_lock
from libc.stdint cimport uint32_t, uint64_t

from vkrt.vk.api cimport (
    VkDevice, VkFence, VkPhysicalDevice, VkPhysicalDeviceMemoryProperties, VkPipelineCache, VkQueue,
    VkResult, VkSampler, VkSubmitInfo,
)
from vkrt.vk.check cimport Kind
from vkrt.vk.loader cimport Instance
from vkrt.vk.process cimport Calls
from vkrt.vk.table cimport DeviceTable


cdef enum:
    # What `submit` returns where it raises: no VkResult has this value.
    RAISED = -2147483001

# The host's own functions that begin and end the use of its queue
ctypedef void (*HostLock)(void* data) noexcept nogil


@cython.final
cdef class Device:
    cdef Instance instance
    # The table stays valid while the device has children, also after close().
    cdef DeviceTable vk
    cdef Calls calls
    # Of the process that opened (or adopted) it
    cdef readonly long process
    cdef VkPhysicalDevice physical
    cdef VkDevice handle
    cdef VkQueue queue
    cdef readonly uint32_t queue_family
    # Where copies go that run beside dispatches: a queue of its own where the device has one, else
    # the compute queue
    cdef VkQueue upload_queue
    cdef readonly uint32_t upload_family
    # Version both the instance and the device speak (VK_API_VERSION_..)
    cdef readonly uint32_t api_version
    cdef VkPhysicalDeviceMemoryProperties memory_properties
    # One memory for host and device (CPU drivers, integrated GPUs): "device" blocks are mapped.
    cdef readonly bint unified
    # The host reads that memory without a cache, and other memory with one.
    cdef readonly bint reads_slowly
    # For tests, see vkrt.vk.pretence: the memory types of `info` are not the driver's; submissions
    # fail while host memory is imported, of which there is so much.
    cdef bint pretends
    cdef bint loses_imports
    cdef int imports
    # Nanoseconds per tick; valid bits are 0 where the queue has no timestamps
    cdef readonly double timestamp_period
    cdef readonly uint32_t timestamp_bits
    # vkFreeMemory alone leaves the pages of a memfd in place, see memory.pyx
    cdef bint remove_on_free
    # DeviceInfo, and the names of the enabled features
    cdef readonly object info
    cdef readonly frozenset features

    cdef bint owned
    cdef readonly bint closed
    cdef int children
    cdef VkSampler nearest
    # What the driver keeps of compiled pipelines, see pipeline_cache.pyx; NULL until the first one
    cdef VkPipelineCache pipeline_cache
    # Where it is saved: "auto", "off" or a path; what came from there and was saved last
    cdef readonly object pipeline_cache_option
    cdef object pipeline_cache_saved
    # What programs on the device share, for `vkrt.runtime.pipelines`
    cdef object shared
    cdef PyThread_type_lock queue_lock
    # Of the host whose queue it is: a context manager, or functions and what they are given
    cdef object host_lock
    cdef HostLock lock_host
    cdef HostLock unlock_host
    cdef void* host_data

    # Every child calls retain before it creates its handle and then created(), which raises (and
    # releases) for a failed result; destroyed() after it destroyed the handle. So the device
    # stays until the last child is gone, even when it was closed. With the GIL only.
    cdef int retain(self) except -1
    cdef int created(self, VkResult result, Kind kind, const char* call) except -1
    cdef void destroyed(self, Kind kind) noexcept
    # What `destroyed` counts, for kinds that retain nothing
    cdef void uncount(self, Kind kind) noexcept
    cdef void release(self) noexcept
    # The device's only sampler (nearest, clamped), created on first use.
    cdef VkSampler sampler(self) except NULL
    # vkQueueSubmit, one thread at a time and under the host's lock: the only use of a queue that
    # there is. A VkResult, or FORKED; raises what the lock raises when it is taken.
    cdef int submit(self, VkQueue queue, const VkSubmitInfo* info,
                    VkFence fence) except? RAISED nogil
    # A wait for the device has failed with this result, which says nothing of whether the device
    # is done: returns where the wait is to be tried again, else raises. `failures` counts them,
    # from 0 at the first one.
    cdef int wait_failed(self, int result, int* failures, const char* call) except -1 nogil
    # Raises DeviceLostError; what was made of the device is left as it is from now on.
    cdef int give_up(self, reason) except -1
    cdef int enter_host_lock(self) except -1
    cdef void exit_host_lock(self) noexcept
    cdef int set_host_lock(self, lock) except -1

    cdef int start(self, uint32_t family) except -1
    cdef int create(self) except -1
    cdef void destroy(self) noexcept
