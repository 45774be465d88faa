"""Devices that were given up: the end of the process waits for them, but not for ever.

A driver that computes, or compiles, on processors of the host does that in threads of its own. They
use what the end of a process takes away: it crashes. The host waits before its `exit`, whose
handlers begin with those of what the driver has used last.
"""

from libc.stdlib cimport free, malloc

from vkrt.core.atomic cimport atomic_add, atomic_read
from vkrt.core.threads cimport (
    nap, pthread_detach, pthread_mutex_lock, pthread_mutex_t, pthread_mutex_unlock, pthread_t,
    start_thread,
)
from vkrt.core.vulkan cimport VkDevice

cdef enum:
    # So long the process stays for all of them, in naps of a millisecond: a driver may never be
    # done.
    PATIENCE = 5000
    NAP = 1_000_000

cdef struct Wait:
    VkDevice device
    WaitIdle wait
    pthread_mutex_t* lock

cdef int waiting


cdef void* until_idle(void* data) noexcept nogil:
    cdef Wait* wait = <Wait*>data
    # A thread may be in a call that does not return.
    pthread_mutex_lock(wait.lock)
    wait.wait(wait.device)
    pthread_mutex_unlock(wait.lock)
    free(wait)
    atomic_add(&waiting, -1)
    return NULL


cdef void wait_for_given_up() noexcept nogil:
    cdef int naps = 0
    while atomic_read(&waiting) > 0 and naps < PATIENCE:
        nap(NAP)
        naps += 1


cdef void watch_until_idle(VkDevice device, WaitIdle wait, pthread_mutex_t* lock) noexcept nogil:
    cdef pthread_t thread
    cdef Wait* data = <Wait*>malloc(sizeof(Wait))
    if data == NULL:
        return
    data.device, data.wait, data.lock = device, wait, lock
    atomic_add(&waiting, 1)
    # Not at the end: no thread can be started there.
    if start_thread(&thread, until_idle, data, b"vkrt-given-up") != 0:
        atomic_add(&waiting, -1)
        free(data)
        return
    pthread_detach(thread)
