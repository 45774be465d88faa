# For the core's waits, as a `vkrt.core.fence.Poll`: runs the handlers of signals; what they raise,
# or CancelledError once, stays the thread's exception, which `check_status` finds.
cdef int poll_interruption(void* data) noexcept with gil
