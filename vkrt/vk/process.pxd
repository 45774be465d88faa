# cython: language_level=3
"""Which process handles belong to, and when they are of no use any more: in a forked child, or on a
device that is given up."""

from vkrt.vk.api cimport VkResult


# A table of Vulkan functions that are called with handles of one process.
cdef struct Calls:
    void** functions
    size_t count
    # Whether this process was forked from the one that the handles belong to: they are of no use
    # here, and every function of the table does nothing but return FORKED.
    bint inherited
    # Whether they are the handles of a device that was given up, see `stop_calls`
    bint given_up
    Calls* before
    Calls* after


cdef enum:
    # What a function returns that must not be called any more: no VkResult has this value.
    FORKED = -2147483000

# Watches over a table until `unwatch`, or until this process is a forked child. With the GIL only.
cdef int watch(Calls* calls, void* table, size_t nbytes) except -1
cdef void unwatch(Calls* calls) noexcept
# No call reaches the driver any more: every function of the table does nothing but return
# VK_ERROR_DEVICE_LOST, so that what is destroyed is left as it is. With the GIL only.
cdef void stop_calls(Calls* calls) noexcept
# Whether this process (or one before it) was forked from one in which tables were watched.
cdef bint forked_from_user() noexcept
