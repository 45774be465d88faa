"""How the calls on compiled programs say what went wrong: in the failure of the calling thread."""

from vkrt.capi.table cimport vkrt_failure
from vkrt.core.error cimport Error

cdef extern from * nogil:
    """
    #ifndef VKRT_CAPI_FAILURE
    #define VKRT_CAPI_FAILURE
    #include <stdio.h>
    /* The compiler checks the format; the value is the code. */
    #define VKRT_REFUSE(failure, status, ...) \\
        (snprintf((failure)->text, sizeof (failure)->text, __VA_ARGS__), \\
         (failure)->code = (status))
    #endif
    """
    int refuse "VKRT_REFUSE"(vkrt_failure* failure, int code, const char* form, ...) noexcept

# The same of what the core met
cdef inline int failed(vkrt_failure* failure, const Error* error) noexcept nogil:
    return refuse(failure, error.status, b"%s", error.text)
