"""Runs on buffers of the host's, which one call begins and another one waits for.

Where the host has a part in a run (streamed weights, branches) a thread carries it out. The caller
holds the method's lock, without which that thread works: whoever has it next waits for the run
first (`wait_for_run`).
"""

from libc.stdint cimport int64_t, uint64_t

from vkrt.core.batch cimport SemaphoreList
from vkrt.core.error cimport Error
from vkrt.core.external cimport ExternalBuffer
from vkrt.core.loaded_program cimport MethodState, ProgramMethod
from vkrt.core.poll cimport Poll

cdef extern nogil:
    # Begins a run of a shape over a state; the run of before is waited for. Where a thread is at it
    # and a binary semaphore is signaled, for which nobody may wait before it is submitted, the run
    # is over when this returns.
    #   inputs, outputs: as `use_buffers` has them
    #   waits, signals: without semaphores where a thread has taken them
    #   copied: bytes that the device copies
    int submit_run "vkrt_submit_run"(MethodState* state, int64_t shape,
                                     const ExternalBuffer* inputs, const ExternalBuffer* outputs,
                                     SemaphoreList* waits, SemaphoreList* signals, uint64_t* copied,
                                     Error* error)
    # Waits for the run that was submitted last, and says what went wrong in it.
    # VKRT_ERROR_CANCELLED where it is cancelled meanwhile; what is on the device goes on then.
    int wait_for_submitted "vkrt_wait_for_submitted"(ProgramMethod* method, Error* error)
    # Waits for it, and keeps what went wrong for whoever waits for the run. Fails only where `poll`
    # (which may be NULL) ends the wait.
    int finish_submitted "vkrt_finish_submitted"(ProgramMethod* method, Poll poll, void* data,
                                                 Error* error)
