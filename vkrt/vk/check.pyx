"""The error funnel of the room, and counters of everything alive in it.

What the core says becomes an exception here and nowhere else. The counters are what tests use
to see that nothing is left behind; they cost one addition per object.
"""

from cpython.exc cimport PyErr_Occurred

from vkrt.core.error cimport (
    VKRT_ERROR_CANCELLED, VKRT_ERROR_CLOSED, VKRT_ERROR_DEVICE, VKRT_ERROR_DEVICE_LOST,
    VKRT_ERROR_DEVICE_MEMORY, VKRT_ERROR_FORKED, VKRT_ERROR_FORMAT, VKRT_ERROR_INPUT,
    VKRT_ERROR_INTERNAL, VKRT_ERROR_LOADER, VKRT_ERROR_MEMORY, VKRT_ERROR_UNSUPPORTED, VKRT_OK,
)
from vkrt.core.live cimport Kind, alive

from vkrt.errors import (
    CancelledError, ClosedError, DeviceLostError, DeviceMemoryError, ForkedError, FormatError,
    InputError, InternalError, LoaderError, UnsupportedError, VulkanError,
)

# Status -> exception, for those that are no Vulkan call's
ERRORS = {
    VKRT_ERROR_CANCELLED: CancelledError,
    VKRT_ERROR_CLOSED: ClosedError,
    VKRT_ERROR_FORMAT: FormatError,
    VKRT_ERROR_INPUT: InputError,
    VKRT_ERROR_INTERNAL: InternalError,
    VKRT_ERROR_MEMORY: MemoryError,
    VKRT_ERROR_UNSUPPORTED: UnsupportedError,
}
# The same for those that have a result and a call
VULKAN_ERRORS = {
    VKRT_ERROR_DEVICE: VulkanError,
    VKRT_ERROR_DEVICE_LOST: DeviceLostError,
    VKRT_ERROR_DEVICE_MEMORY: DeviceMemoryError,
    VKRT_ERROR_FORKED: ForkedError,
    VKRT_ERROR_LOADER: LoaderError,
}

# Their order is that of `vkrt.core.live.Kind`.
NAMES = ("instance", "device", "allocator", "block", "command_buffer", "import", "pipeline",
         "buffer", "buffer_view", "image", "image_view", "shader_module", "descriptor_layout",
         "descriptor_pool", "command_pool", "fence", "query_pool", "semaphore", "pipeline_cache",
         "sampler", "abandoned")


cdef int check_status(int status, const Error* error) except -1 nogil:
    if status == VKRT_OK:
        return 0
    with gil:
        if PyErr_Occurred() != NULL:
            return -1
        text = error.text.decode(errors="replace")
        kind = VULKAN_ERRORS.get(status)
        if status == VKRT_ERROR_DEVICE_MEMORY and error.shortage.asked:
            raise DeviceMemoryError(
                text, error.result, error.call.decode(), asked=error.shortage.asked,
                heap=error.shortage.heap, budget=error.shortage.budget,
                in_use=error.shortage.in_use)
        if kind is not None:
            raise kind(text, error.result, error.call.decode())
        raise ERRORS[status](text)


def live_objects():
    """How many Vulkan objects of each kind vkrt holds in this process, as a dict of ints.

    An object counts until it is really destroyed: a closed device with buffers left on it is
    alive until the last of them is closed. "abandoned" are closed objects of all kinds that were
    left as they are, because nobody can tell whether the device is done with them: after a
    `DeviceLostError` that says so, they stay to the end of the process.
    """
    return {name: alive(<Kind>i) for i, name in enumerate(NAMES)}
