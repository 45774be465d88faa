# cython: language_level=3
"""The error funnel of the room, and counters of everything alive in it.

Every negative VkResult becomes an exception here and nowhere else. The counters are what tests use
to see that nothing is left behind; they cost one addition per object.
"""

from vkrt.vk.api cimport (
    VkResult, VK_ERROR_DEVICE_LOST, VK_ERROR_EXTENSION_NOT_PRESENT, VK_ERROR_FEATURE_NOT_PRESENT,
    VK_ERROR_FORMAT_NOT_SUPPORTED, VK_ERROR_FRAGMENTATION, VK_ERROR_FRAGMENTED_POOL,
    VK_ERROR_INCOMPATIBLE_DRIVER, VK_ERROR_INITIALIZATION_FAILED,
    VK_ERROR_INVALID_EXTERNAL_HANDLE, VK_ERROR_INVALID_SHADER_NV, VK_ERROR_LAYER_NOT_PRESENT,
    VK_ERROR_MEMORY_MAP_FAILED, VK_ERROR_OUT_OF_DEVICE_MEMORY, VK_ERROR_OUT_OF_HOST_MEMORY,
    VK_ERROR_OUT_OF_POOL_MEMORY, VK_ERROR_TOO_MANY_OBJECTS, VK_ERROR_UNKNOWN,
    VK_ERROR_VALIDATION_FAILED_EXT,
)

from vkrt.vk.process cimport FORKED

from vkrt.errors import (
    DeviceLostError, DeviceMemoryError, ForkedError, LoaderError, VulkanError,
)

# VkResult -> (name, what it means to the user, exception)
RESULTS = {
    VK_ERROR_OUT_OF_HOST_MEMORY:
        ("VK_ERROR_OUT_OF_HOST_MEMORY", "the driver is out of host memory", DeviceMemoryError),
    VK_ERROR_OUT_OF_DEVICE_MEMORY:
        ("VK_ERROR_OUT_OF_DEVICE_MEMORY", "out of device memory", DeviceMemoryError),
    VK_ERROR_DEVICE_LOST:
        ("VK_ERROR_DEVICE_LOST", "the device was lost", DeviceLostError),
    VK_ERROR_INCOMPATIBLE_DRIVER:
        ("VK_ERROR_INCOMPATIBLE_DRIVER", "no usable Vulkan driver", LoaderError),
    VK_ERROR_INITIALIZATION_FAILED:
        ("VK_ERROR_INITIALIZATION_FAILED", "the driver could not start", VulkanError),
    VK_ERROR_MEMORY_MAP_FAILED:
        ("VK_ERROR_MEMORY_MAP_FAILED", "memory could not be mapped", VulkanError),
    VK_ERROR_LAYER_NOT_PRESENT:
        ("VK_ERROR_LAYER_NOT_PRESENT", "a layer is not installed", VulkanError),
    VK_ERROR_EXTENSION_NOT_PRESENT:
        ("VK_ERROR_EXTENSION_NOT_PRESENT", "an extension is missing", VulkanError),
    VK_ERROR_FEATURE_NOT_PRESENT:
        ("VK_ERROR_FEATURE_NOT_PRESENT", "a device feature is missing", VulkanError),
    VK_ERROR_TOO_MANY_OBJECTS:
        ("VK_ERROR_TOO_MANY_OBJECTS", "too many objects of this kind", VulkanError),
    VK_ERROR_FORMAT_NOT_SUPPORTED:
        ("VK_ERROR_FORMAT_NOT_SUPPORTED", "the format is not supported", VulkanError),
    VK_ERROR_FRAGMENTED_POOL:
        ("VK_ERROR_FRAGMENTED_POOL", "the descriptor pool is fragmented", VulkanError),
    VK_ERROR_OUT_OF_POOL_MEMORY:
        ("VK_ERROR_OUT_OF_POOL_MEMORY", "the descriptor pool is full", VulkanError),
    VK_ERROR_INVALID_EXTERNAL_HANDLE:
        ("VK_ERROR_INVALID_EXTERNAL_HANDLE", "the memory cannot be imported", VulkanError),
    VK_ERROR_FRAGMENTATION:
        ("VK_ERROR_FRAGMENTATION", "the descriptor pool is fragmented", VulkanError),
    VK_ERROR_INVALID_SHADER_NV:
        ("VK_ERROR_INVALID_SHADER_NV", "the driver refuses the shader", VulkanError),
    VK_ERROR_VALIDATION_FAILED_EXT:
        ("VK_ERROR_VALIDATION_FAILED_EXT", "the validation layer refuses the call", VulkanError),
    VK_ERROR_UNKNOWN:
        ("VK_ERROR_UNKNOWN", "the driver does not say what failed", VulkanError),
    FORKED:
        ("not called", "the device was opened before this process was forked; open it, or load "
         "the program, after the fork", ForkedError),
}

# Their order is that of `Kind`.
NAMES = ("instance", "device", "allocator", "block", "buffer", "buffer_view", "image",
         "image_view", "shader_module", "descriptor_layout", "pipeline", "descriptor_pool",
         "command_pool", "command_buffer", "fence", "query_pool", "semaphore", "import",
         "pipeline_cache", "sampler", "abandoned")

cdef long[<int>KINDS] alive


cdef int check(VkResult result, const char* call) except -1 nogil:
    if <int>result >= 0:
        return <int>result
    with gil:
        raise error_of(<int>result, call.decode())


cdef void count(Kind kind, int change) noexcept:
    alive[<int>kind] += change


def error_of(int result, str call, **details):
    """The exception for a failed Vulkan call.

    Args:
        result: the VkResult, negative.
        call: name of the function.
        details: further keywords of the exception.
    """
    unlisted = (f"VkResult {result}", "failed", VulkanError)
    name, meaning, kind = RESULTS.get(result, unlisted)
    return kind(f"{call}: {meaning} ({name})", result, call, **details)


def live_objects():
    """How many Vulkan objects of each kind vkrt holds in this process, as a dict of ints.

    An object counts until it is really destroyed: a closed device with buffers left on it is
    alive until the last of them is closed. "abandoned" are closed objects of all kinds that were
    left as they are, because nobody can tell whether the device is done with them: after a
    `DeviceLostError` that says so, they stay to the end of the process.
    """
    return {name: alive[i] for i, name in enumerate(NAMES)}
