# cython: language_level=3
"""Handles belong to the process that made them: what a forked child does with those it inherits.

A fork copies neither the threads of a driver nor what its locks guard, and device memory may be
shared with the parent. So in a child no call may reach the driver with a handle of the parent: a
wait would last forever, and what is destroyed or freed may be the parent's. Every call goes through
a table of functions (`vkrt.vk.table`). In the child, before anything else runs there, all entries
of all tables are replaced by a function that does nothing and returns FORKED, which `check` raises
as a `ForkedError`; destroying forgets the handle. Calls cost nothing more in the parent.

`pthread_atfork` sees every fork, also those that are not Python's.
"""

from vkrt.vk.api cimport VK_ERROR_DEVICE_LOST, VkResult


cdef extern from "pthread.h" nogil:
    int pthread_atfork(void (*prepare)() noexcept nogil, void (*parent)() noexcept nogil,
                       void (*child)() noexcept nogil)

cdef Calls* first = NULL
cdef bint is_watching = False
cdef bint was_forked = False


# Called in the place of functions with arguments, which is well-defined on every platform that
# forks: the caller passes them and takes them away again.
cdef VkResult refuse() noexcept nogil:
    return <VkResult>FORKED


cdef VkResult lost() noexcept nogil:
    return VK_ERROR_DEVICE_LOST


cdef void replace_all(Calls* calls, void* function) noexcept nogil:
    """Puts one function in the place of all that there are."""
    cdef size_t i
    for i in range(calls.count):
        if calls.functions[i] != NULL:
            calls.functions[i] = function


cdef void in_child() noexcept nogil:
    """Runs in the child, in the thread that forked, which is the only one there."""
    global first, was_forked
    cdef Calls* calls = first
    while calls != NULL:
        replace_all(calls, <void*>refuse)
        calls.inherited = True
        was_forked = True
        calls = calls.after
    first = NULL


cdef int watch(Calls* calls, void* table, size_t nbytes) except -1:
    global first, is_watching
    if not is_watching:
        if pthread_atfork(NULL, NULL, in_child):
            raise MemoryError
        is_watching = True
    calls.functions = <void**>table
    calls.count = nbytes // sizeof(void*)
    calls.before, calls.after = NULL, first
    if first != NULL:
        first.before = calls
    first = calls
    return 0


cdef void unwatch(Calls* calls) noexcept:
    global first
    if calls.functions == NULL or calls.inherited:
        return
    if calls.before != NULL:
        calls.before.after = calls.after
    else:
        first = calls.after
    if calls.after != NULL:
        calls.after.before = calls.before
    calls.functions = NULL


cdef void stop_calls(Calls* calls) noexcept:
    if not calls.inherited:
        calls.given_up = True
        replace_all(calls, <void*>lost)


cdef bint forked_from_user() noexcept:
    return was_forked
