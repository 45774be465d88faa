# cython: language_level=3
"""How the core says what went wrong: a status that is returned, a text that the caller keeps."""

# The numbers are those of vkrt/capi/vkrt.h; a test compares them.
cdef enum:
    VKRT_OK = 0
    VKRT_ERROR_INPUT = 3

cdef extern from * nogil:
    """
    #ifndef VKRT_CORE_ERROR
    #define VKRT_CORE_ERROR
    #include <stdio.h>
    typedef struct { int status; char text[240]; } VkrtError;
    /* The compiler checks the format; the value is the status. */
    #define VKRT_FAIL(error, code, ...) \\
        (snprintf((error)->text, sizeof (error)->text, __VA_ARGS__), (error)->status = (code))
    #endif
    """
    # Filled only where a function returns another status than VKRT_OK.
    ctypedef struct Error "VkrtError":
        int status
        char text[240]  # ends with a zero; longer ones are cut
    int fail "VKRT_FAIL"(Error* error, int status, const char* form, ...) noexcept
