"""Streaming: a thread brings weights to their places in the pool while the device computes.

The plan (`vkrt.plan.stream.streaming`) says which weight may be reloaded when which submission is
complete, and which submissions wait for which weight. Here are the two sides of that:

* The thread carries out the reloads in order, over and over: for each it waits until the submission
  that frees its place is complete on the device, then brings the bytes there.
* `run_streamed` submits in order, and the device waits for the weights itself: for the value of a
  timeline semaphore that the thread raises when it has written a weight. Where copies run on the
  device their submission brings that value, and has to come before one that waits for it, as both
  may share a queue.

Another timeline counts the submissions that are complete: submission s of run r of n is at
base + r * n + s + 1. When something fails, the run that needed it fails, what the pool holds is
forgotten, and counting starts anew (another epoch) from where the device is. Submissions that wait
by then for what will not come are let go; what they compute is never seen. Where that fails too,
again and again, they would wait for ever: the device is given up. A run that is cancelled ends at
once; the next one, or whoever releases what it used, then waits until the device is at rest.
"""

from libc.stdint cimport int64_t, uint64_t

from vkrt.core.device cimport Device
from vkrt.core.error cimport Error
from vkrt.core.fence cimport Fence
from vkrt.core.handles cimport Handles
from vkrt.core.host_kernel cimport Host
from vkrt.core.poll cimport Poll
from vkrt.core.reader cimport Reader
from vkrt.core.recorded cimport Recording
from vkrt.core.records cimport ReloadRow, WeightPlanRow
from vkrt.core.semaphore cimport TimelineSemaphore
from vkrt.core.threads cimport pthread_cond_t, pthread_mutex_t, pthread_t
from vkrt.core.uploads cimport Uploader

cdef enum:
    # So often, in nanoseconds, a wait for the device looks whether it should go on.
    PATIENCE = 50_000_000

cdef struct Streamer:
    Device* device
    Uploader uploader
    const ReloadRow* reloads
    int64_t count
    # Of every submission, how many reloads of its run have to be done before it
    const int64_t* needed
    int64_t submissions
    # Whether bytes may be read from the disk before their place is free
    bint prefetches
    # Whether the last submission changes what is kept from run to run: it is then submitted when
    # all weights have arrived, so that a run which fails changes nothing.
    bint keeps
    TimelineSemaphore computed
    # Signaled by the last submission of a run; whether that is submitted and not waited for
    Fence finished
    bint finishing
    # A run has begun and not ended well, and no restart has made up for it.
    bint broken
    # Values of `computed`: the last that was submitted, and where this epoch began
    uint64_t submitted, base
    pthread_t thread
    bint has_thread
    # What is below is for both threads, under the lock. It has changed: for the thread, for a run.
    bint has_lock
    pthread_mutex_t lock
    pthread_cond_t go, news
    # Reloads carried out and runs begun, in this epoch
    uint64_t arrived, started
    # Values of the uploader's `arrivals`, where the host raises it: where this epoch began, and the
    # last one
    uint64_t first, last_value
    # Where copies raise it: of each reload the value behind its copies
    uint64_t* values
    # What ended the thread's epoch, with the number of the system's error
    bint failed
    Error error
    int error_number
    # The thread has nothing to do until the next epoch.
    bint idle
    # The device waits for reloads that do not come any more, and the signal that would let it go on
    # has failed.
    bint stranded
    # This epoch is to end; everything is.
    bint ending, stopping

cdef extern nogil:
    # Starts the thread, which begins with what the first run needs first. Takes the uploader along,
    # which was opened before. Balance with `close_streamer`, also where it failed.
    int open_streamer "vkrt_open_streamer"(const WeightPlanRow* plan, const Handles* handles,
                                           Streamer* streamer, Error* error)
    # Runs all submissions once. A weight that could not be read fails the run; the next one tries
    # again.
    #   reader: see `vkrt.core.row_reads`; NULL where a plan reads no rows
    int run_streamed "vkrt_run_streamed"(Streamer* streamer, const Recording* recording,
                                         const Handles* handles, Reader* reader, const Host* host,
                                         Error* error)
    # Waits until the device is done with a run that was cancelled; nothing where there was none.
    int rest_streamer "vkrt_rest_streamer"(Streamer* streamer, Poll poll, void* data, Error* error)
    # Ends the thread. No run may be in progress. May be called again.
    void close_streamer "vkrt_close_streamer"(Streamer* streamer)
