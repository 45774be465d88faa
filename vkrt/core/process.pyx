"""Handles belong to the process that made them: what a forked child does with those it inherits.

A fork copies neither the threads of a driver nor what its locks guard, and device memory may be
shared with the parent. So in a child no call may reach the driver with a handle of the parent: a
wait would last forever, and what is destroyed or freed may be the parent's. Every call goes through
a table of functions (`vkrt.core.table`). In the child, before anything else runs there, all entries
of all tables are replaced by a function that does nothing and returns FORKED, which `check` raises
as a `ForkedError`; destroying forgets the handle. Calls cost nothing more in the parent.

`pthread_atfork` sees every fork, also those that are not Python's.
"""

from vkrt.core.error cimport VKRT_ERROR_MEMORY, VKRT_OK, Error, fail
from vkrt.core.results cimport FORKED
from vkrt.core.threads cimport (
    pthread_atfork, pthread_mutex_lock, pthread_mutex_t, pthread_mutex_unlock,
)
from vkrt.core.vulkan cimport VK_ERROR_DEVICE_LOST, VkResult

cdef extern from * nogil:
    """
    static pthread_mutex_t vkrt_instance_lock = PTHREAD_MUTEX_INITIALIZER;
    static pthread_mutex_t vkrt_watch_lock = PTHREAD_MUTEX_INITIALIZER;
    """
    # A fork waits for both, so that the child finds whole what they guard. The second is of the
    # list of tables, and may be taken while the first is held.
    pthread_mutex_t instance_lock "vkrt_instance_lock"
    pthread_mutex_t watch_lock "vkrt_watch_lock"

cdef Calls* first
cdef bint is_watching
cdef bint was_forked
cdef bint was_forked_after_use


# Called in the place of functions with arguments, which is well-defined on every platform that
# forks: the caller passes them and takes them away again.
cdef VkResult refuse() noexcept nogil:
    return <VkResult>FORKED


cdef VkResult lost() noexcept nogil:
    return VK_ERROR_DEVICE_LOST


cdef void replace_all(Calls* calls, void* function) noexcept nogil:
    cdef size_t i
    for i in range(calls.count):
        if calls.functions[i] != NULL:
            calls.functions[i] = function


cdef void before_fork() noexcept nogil:
    pthread_mutex_lock(&instance_lock)
    pthread_mutex_lock(&watch_lock)


cdef void in_parent() noexcept nogil:
    pthread_mutex_unlock(&watch_lock)
    pthread_mutex_unlock(&instance_lock)


cdef void in_child() noexcept nogil:
    """Runs in the child, in the thread that forked, which is the only one there."""
    global first, was_forked, was_forked_after_use
    cdef Calls* calls = first
    was_forked_after_use = True
    while calls != NULL:
        replace_all(calls, <void*>refuse)
        calls.inherited = True
        was_forked = True
        calls = calls.after
    first = NULL
    in_parent()


cdef int watch(Calls* calls, void* table, size_t nbytes, Error* error) noexcept nogil:
    global first, is_watching
    cdef int status = VKRT_OK
    pthread_mutex_lock(&watch_lock)
    if not is_watching and pthread_atfork(before_fork, in_parent, in_child) != 0:
        status = fail(error, VKRT_ERROR_MEMORY, b"pthread_atfork: the host is out of memory")
    else:
        is_watching = True
        calls.functions = <void**>table
        calls.count = nbytes // sizeof(void*)
        calls.before, calls.after = NULL, first
        if first != NULL:
            first.before = calls
        first = calls
    pthread_mutex_unlock(&watch_lock)
    return status


cdef void unwatch(Calls* calls) noexcept nogil:
    global first
    if calls.functions == NULL or calls.inherited:
        return
    pthread_mutex_lock(&watch_lock)
    if calls.before != NULL:
        calls.before.after = calls.after
    else:
        first = calls.after
    if calls.after != NULL:
        calls.after.before = calls.before
    calls.functions = NULL
    pthread_mutex_unlock(&watch_lock)


cdef void stop_calls(Calls* calls) noexcept nogil:
    if not calls.inherited:
        calls.given_up = True
        replace_all(calls, <void*>lost)


cdef bint forked_from_user() noexcept nogil:
    return was_forked


cdef bint forked_after_use() noexcept nogil:
    return was_forked_after_use


cdef void lock_instance() noexcept nogil:
    pthread_mutex_lock(&instance_lock)


cdef void unlock_instance() noexcept nogil:
    pthread_mutex_unlock(&instance_lock)
