"""Which process handles belong to, and when they are of no use any more: in a forked child, or on a
device that is given up."""

from vkrt.core.error cimport Error

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

cdef extern nogil:
    # Watches over a table until `unwatch`, or until this process is a forked child.
    int watch "vkrt_watch"(Calls* calls, void* table, size_t nbytes, Error* error)
    void unwatch "vkrt_unwatch"(Calls* calls)
    # No call reaches the driver any more: every function of the table does nothing but return
    # VK_ERROR_DEVICE_LOST, so that what is destroyed is left as it is.
    void stop_calls "vkrt_stop_calls"(Calls* calls)
    # Whether this process (or one before it) was forked from one in which tables were watched.
    bint forked_from_user "vkrt_forked_from_user"()
    # The same of one in which a table had ever been watched.
    bint forked_after_use "vkrt_forked_after_use"()

    # Around every use of the instance that the process shares, see `vkrt.core.instance`
    void lock_instance "vkrt_lock_instance"()
    void unlock_instance "vkrt_unlock_instance"()
