"""What the result of a Vulkan call means."""

from vkrt.core.error cimport Error

cdef extern from * nogil:
    """
    #ifndef VKRT_CORE_RESULTS
    #define VKRT_CORE_RESULTS
    #define VKRT_CALL_FORKED (-2147483000)
    #endif
    """
    # What a function returns that must not be called any more, because its handles are those of the
    # process that this one was forked from: no VkResult has this value.
    enum:
        FORKED "VKRT_CALL_FORKED"

cdef extern nogil:
    # VKRT_OK for a result that is not negative (VK_SUCCESS, VK_TIMEOUT, ..), else the error that it
    # is.
    int check_result "vkrt_check_result"(int result, const char* call, Error* error)
