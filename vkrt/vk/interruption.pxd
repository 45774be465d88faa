# cython: language_level=3


cdef int check_interruption() except -1
# The same for the core's waits, as a `vkrt.core.fence.Poll`; what it raises stays the thread's
# exception, which `check_status` finds.
cdef int poll_interruption(void* data) noexcept with gil
