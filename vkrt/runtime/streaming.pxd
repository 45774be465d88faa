# cython: language_level=3

from libc.stdint cimport uint64_t

from vkrt.vk.command cimport CommandBuffer, Fence
from vkrt.vk.device cimport Device
from vkrt.vk.timeline_semaphore cimport TimelineSemaphore


cdef class Event:
    cdef object lock

    cdef int set(self) except -1
    cdef int wait(self) except -1


cdef class Streamer:
    cdef Device device
    cdef object uploader
    cdef tuple reloads
    cdef list needed
    cdef int sections
    cdef TimelineSemaphore computed
    # Signaled by the last section of a run; whether that is submitted and not waited for
    cdef Fence finished
    cdef bint finishing
    # A run has begun and not ended well, nor has `_restart` made up for it.
    cdef readonly bint broken
    # Raised when weights have arrived; whether by one for each reload, so that sections which wait
    # for it may be submitted before.
    cdef TimelineSemaphore arrivals
    cdef bint host_signaled
    # Whether bytes may be read from the disk before their place is free
    cdef bint prefetches
    cdef bint keeps
    cdef object thread
    # What is below has changed: for the thread, for a run
    cdef Event go
    cdef Event news
    # Reloads carried out and runs begun, in this epoch
    cdef uint64_t arrived
    cdef uint64_t started
    # Values of `computed`: where this epoch began, and the last that was submitted
    cdef uint64_t base
    # The same of `arrivals` where they are signaled by the host
    cdef uint64_t first
    cdef uint64_t last_value
    cdef uint64_t submitted
    # Of each reload: the value of the uploader's semaphore behind its copies
    cdef list values
    cdef object error
    # The thread has nothing to do until the next epoch.
    cdef bint idle
    # The device waits for reloads that do not come any more, and the signal that would let it go
    # on has failed.
    cdef bint stranded
    # This epoch is to end; everything is.
    cdef bint ending
    cdef bint stopping

    cdef int _carry_on(self) except -1
    cdef bint _may_start(self, int place, uint64_t run, int ahead, int after) except -1
    cdef int _let_go(self) except -1
    cdef int _free(self, int* failures) except -1
    cdef int _signal(self, uint64_t value) except -1
    cdef int _check(self, uint64_t number) except -1
    cdef int _arrival(self, uint64_t number) except -1
    cdef int _submit(self, CommandBuffer commands, int section, uint64_t needed,
                     uint64_t value) except -1
    cdef int _complete(self, uint64_t value) except -1
    cdef int _finish(self) except -1
    cdef int _restart(self) except -1
    cdef int _come_to_rest(self) except -1
