# cython: language_level=3
"""The error funnel and the live-object counters."""

from vkrt.core.error cimport Error
from vkrt.core.vulkan cimport VkResult

# Raises for a negative result, returns a non-negative one (VK_SUCCESS, VK_TIMEOUT, ..).
cdef int check(VkResult result, const char* call) except -1 nogil
# Raises what the core says, unless the status is VKRT_OK; or what a callback of the host's raised.
cdef int check_status(int status, const Error* error) except -1 nogil
