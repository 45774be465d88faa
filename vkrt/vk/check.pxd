"""The error funnel and the live-object counters."""

from vkrt.core.error cimport Error

# Raises what the core says, unless the status is VKRT_OK; or what a callback of the host's raised.
cdef int check_status(int status, const Error* error) except -1 nogil
