# cython: language_level=3

from libc.stdint cimport uint64_t

from vkrt.vk.command cimport CommandBuffer, Fence
from vkrt.vk.device cimport Device
from vkrt.vk.timeline cimport Timeline


cdef class Bell:
    cdef object lock

    cdef int ring(self) except -1
    cdef int wait(self) except -1


cdef class Streamer:
    cdef Device device
    cdef object carrier
    cdef tuple reloads
    cdef list needed
    cdef int sections
    cdef Timeline computed
    # Signaled by the last section of a run; whether that is submitted and not waited for
    cdef Fence finished
    cdef bint finishing
    # A run has begun and not ended well, nor has `_restart` made up for it.
    cdef readonly bint broken
    # Raised when weights have arrived; whether by one for each reload, so that sections which wait
    # for it may be submitted before.
    cdef Timeline arrivals
    cdef bint foretold
    # Whether bytes may be read from the disk before their place is free
    cdef bint asks
    cdef bint keeps
    cdef object thread
    # What is below has changed: for the thread, for a run
    cdef Bell go
    cdef Bell news
    # Reloads carried out and runs begun, in this epoch
    cdef uint64_t arrived
    cdef uint64_t started
    # Values of the timeline: where this epoch began, and the last that was submitted
    cdef uint64_t base
    # The same of `arrivals` where it is foretold
    cdef uint64_t first
    cdef uint64_t told
    cdef uint64_t submitted
    # Of each reload: the value of the carrier's timeline behind its copies
    cdef list values
    cdef object error
    # The thread has nothing to do until the next epoch.
    cdef bint idle
    # This epoch is to end; everything is.
    cdef bint ending
    cdef bint stopping

    cdef int _carry_on(self) except -1
    cdef bint _may_start(self, int place, uint64_t run, int ahead, int after) except -1
    cdef int _let_go(self) except -1
    cdef int _tell(self, uint64_t value) except -1
    cdef int _check(self, uint64_t number) except -1
    cdef int _arrival(self, uint64_t number) except -1
    cdef int _submit(self, CommandBuffer commands, int section, uint64_t needed,
                     uint64_t value) except -1
    cdef int _complete(self, uint64_t value) except -1
    cdef int _finish(self) except -1
    cdef int _restart(self) except -1
    cdef int _come_to_rest(self) except -1
