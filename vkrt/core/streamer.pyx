cimport libc.errno as system_errno
from libc.stdint cimport UINT64_MAX
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from vkrt.core.device cimport check_usable, give_up
from vkrt.core.error cimport (
    VKRT_ERROR_CANCELLED, VKRT_ERROR_DEVICE, VKRT_ERROR_DEVICE_LOST, VKRT_ERROR_INTERNAL,
    VKRT_ERROR_MEMORY, VKRT_ERROR_SYSTEM, VKRT_OK, fail,
)
from vkrt.core.fence cimport close_fence, make_fence, wait_for_fence
from vkrt.core.host_kernel cimport run_host_kernel
from vkrt.core.recorded cimport RecordedSubmission
from vkrt.core.reload_thread cimport let_go, reload_weights
from vkrt.core.semaphore cimport close_timeline, make_timeline, submit_in_order, wait_for_value
from vkrt.core.threads cimport (
    join_thread, make_condition, pthread_cond_destroy, pthread_cond_signal, pthread_mutex_destroy,
    pthread_mutex_init, pthread_mutex_lock, pthread_mutex_unlock, start_thread, wait_awhile,
)
from vkrt.core.uploads cimport close_uploader, finish_uploads, renew_arrivals

cdef enum:
    # So many waits a device is given to end that cannot be let go.
    STRANDED_WAITS = 20


cdef int fail_thread(int number, Error* error) noexcept nogil:
    system_errno.errno = number
    return fail(error, VKRT_ERROR_SYSTEM, b"the thread of streamed weights cannot be started")


cdef int open_lock(Streamer* streamer, Error* error) noexcept nogil:
    cdef int number = pthread_mutex_init(&streamer.lock, NULL)
    if number != 0:
        return fail_thread(number, error)
    number = make_condition(&streamer.go)
    if number == 0:
        number = make_condition(&streamer.news)
        if number == 0:
            streamer.has_lock = True
            return VKRT_OK
        pthread_cond_destroy(&streamer.go)
    pthread_mutex_destroy(&streamer.lock)
    return fail_thread(number, error)


cdef int open_streamer(const WeightPlanRow* plan, const Handles* handles, Streamer* streamer,
                       Error* error) noexcept nogil:
    cdef int number
    streamer.device = handles.device
    streamer.reloads = handles.records.reload + plan.reloads.value.reloads.first
    streamer.count = plan.reloads.value.reloads.count
    streamer.needed = handles.records.integer + plan.reloads.value.needed.first
    streamer.submissions = plan.reloads.value.needed.count
    streamer.prefetches = plan.reloads.value.prefetches
    streamer.keeps = plan.keeps_state
    streamer.values = <uint64_t*>calloc(<size_t>streamer.count + 1, sizeof(uint64_t))
    if streamer.values == NULL:
        return fail(error, VKRT_ERROR_MEMORY, b"streamed weights: the host is out of memory")
    if (make_timeline(streamer.device, &streamer.computed, error)
            or make_fence(streamer.device, &streamer.finished, error)
            or open_lock(streamer, error)):
        return error.status
    number = start_thread(&streamer.thread, reload_weights, streamer, b"vkrt-stream")
    if number != 0:
        return fail_thread(number, error)
    streamer.has_thread = True
    return VKRT_OK


# Waits

cdef int cancel(Error* error) noexcept nogil:
    return fail(error, VKRT_ERROR_CANCELLED, b"the wait for streamed weights was ended")


cdef int wait_for_thread(Streamer* streamer, uint64_t number, Poll poll, void* data,
                         Error* error) noexcept nogil:
    """Waits until so many reloads have been carried out, or the thread is idle."""
    pthread_mutex_lock(&streamer.lock)
    while streamer.arrived < number and not streamer.idle:
        wait_awhile(&streamer.news, &streamer.lock, PATIENCE)
        if poll == NULL:
            continue
        # Without the lock: the host may take others, for which a thread of its own waits.
        pthread_mutex_unlock(&streamer.lock)
        if poll(data):
            return cancel(error)
        pthread_mutex_lock(&streamer.lock)
    pthread_mutex_unlock(&streamer.lock)
    return VKRT_OK


cdef int check_arrived(Streamer* streamer, uint64_t number, Error* error) noexcept nogil:
    """Says what went wrong with one of so many reloads."""
    cdef int status = VKRT_OK
    pthread_mutex_lock(&streamer.lock)
    if streamer.arrived < number and streamer.failed:
        error[0] = streamer.error
        system_errno.errno = streamer.error_number
        status = error.status
    elif streamer.arrived < number:
        status = fail(error, VKRT_ERROR_INTERNAL, b"the thread of streamed weights has ended")
    pthread_mutex_unlock(&streamer.lock)
    return status


cdef int wait_for_arrival(Streamer* streamer, uint64_t number, const Host* host,
                          Error* error) noexcept nogil:
    return (wait_for_thread(streamer, number, host.poll, host.poll_data, error)
            or check_arrived(streamer, number, error))


cdef int free_stranded(Streamer* streamer, int* failures, Error* error) noexcept nogil:
    """For waits: tries again to let a stranded device go on; gives it up after so many failures of
    this wait."""
    cdef bint stranded
    pthread_mutex_lock(&streamer.lock)
    if streamer.stranded:
        let_go(streamer)
        failures[0] += 1
    stranded = streamer.stranded
    pthread_mutex_unlock(&streamer.lock)
    if not stranded or failures[0] < STRANDED_WAITS:
        return VKRT_OK
    fail(error, VKRT_ERROR_DEVICE, b"the signal that streamed weights have arrived cannot be given")
    return give_up(streamer.device, error)


cdef int complete(Streamer* streamer, uint64_t value, Poll poll, void* data,
                  Error* error) noexcept nogil:
    """Waits for a value of `computed`."""
    cdef bint reached = False
    cdef int failures = 0
    while True:
        if wait_for_value(&streamer.computed, value, PATIENCE, &reached, error):
            return error.status
        if reached:
            return VKRT_OK
        if poll != NULL and poll(data):
            return cancel(error)
        if free_stranded(streamer, &failures, error):
            return error.status


cdef int finish(Streamer* streamer, Poll poll, void* data, Error* error) noexcept nogil:
    """Waits for the last submission of a run.

    By a fence: where timelines are the driver's own work, one that is waited for wakes its waiter
    at every value. The host awake for a moment at every submission made a system with two
    processors put the driver's thread behind the transfer thread on one of them, and what should
    overlap took turns.
    """
    cdef bint done = False
    cdef int failures = 0
    while True:
        if wait_for_fence(&streamer.finished, PATIENCE, &done, error):
            return error.status
        if done:
            streamer.finishing = False
            return VKRT_OK
        if poll != NULL and poll(data):
            return cancel(error)
        if free_stranded(streamer, &failures, error):
            return error.status


# Runs

cdef int submit_section(Streamer* streamer, const RecordedSubmission* item, int64_t number,
                        uint64_t needed, uint64_t value, const Host* host,
                        Error* error) noexcept nogil:
    """Submits what needs so many reloads of this epoch, and brings `computed` to a value."""
    cdef int64_t own = streamer.needed[number]
    cdef uint64_t arrival = streamer.first + needed
    cdef bint last = number == streamer.submissions - 1
    cdef bint failed
    if not streamer.uploader.host_signaled:
        if wait_for_arrival(streamer, needed, host, error):
            return error.status
        pthread_mutex_lock(&streamer.lock)
        arrival = streamer.values[own - 1] if own > 0 else 0
        pthread_mutex_unlock(&streamer.lock)
    elif streamer.keeps and last:
        if wait_for_arrival(streamer, needed, host, error):
            return error.status
    else:
        pthread_mutex_lock(&streamer.lock)
        failed = streamer.failed
        pthread_mutex_unlock(&streamer.lock)
        # Nobody would let it go, if it needs the reload that failed.
        if failed and check_arrived(streamer, needed, error):
            return error.status
    if submit_in_order(&item.commands, &streamer.uploader.arrivals if own > 0 else NULL, arrival,
                       &streamer.computed, value, False, &streamer.finished if last else NULL,
                       error):
        return error.status
    streamer.finishing = last
    streamer.submitted = value
    return VKRT_OK


cdef int run_all(Streamer* streamer, const Recording* recording, const Handles* handles,
                 Reader* reader, uint64_t run, const Host* host, Error* error) noexcept nogil:
    cdef const RecordedSubmission* item
    cdef uint64_t needed = 0, value
    cdef int64_t i
    cdef bint skipping = False
    for i in range(recording.count):
        item = &recording.items[i]
        needed = run * <uint64_t>streamer.count + <uint64_t>streamer.needed[i]
        value = streamer.base + run * <uint64_t>streamer.submissions + <uint64_t>i + 1
        if submit_section(streamer, item, i, needed, value, host, error):
            return error.status
        if item.host == NULL:
            continue
        # What the device does in a branch that is not taken nobody reads, and the weights come in
        # one order.
        if (complete(streamer, value, host.poll, host.poll_data, error)
                or check_arrived(streamer, needed, error)
                or run_host_kernel(host, reader, handles, item.host, i, &skipping, error)):
            return error.status
    return (finish(streamer, host.poll, host.poll_data, error)
            or check_arrived(streamer, needed, error))


cdef int run_streamed(Streamer* streamer, const Recording* recording, const Handles* handles,
                      Reader* reader, const Host* host, Error* error) noexcept nogil:
    cdef uint64_t run
    cdef Error second
    cdef int number
    # In a forked child there is no thread, and the lock may be taken for ever.
    if (check_usable(streamer.device, error)
            or rest_streamer(streamer, host.poll, host.poll_data, error)):
        return error.status
    if recording.count != streamer.submissions:
        return fail(error, VKRT_ERROR_INTERNAL, b"%lld submissions wait for reloads of %lld",
                    <long long>recording.count, <long long>streamer.submissions)
    streamer.broken = True
    pthread_mutex_lock(&streamer.lock)
    run = streamer.started
    streamer.started += 1
    pthread_cond_signal(&streamer.go)
    pthread_mutex_unlock(&streamer.lock)
    if run_all(streamer, recording, handles, reader, run, host, error) == VKRT_OK:
        streamer.broken = False
        return VKRT_OK
    # Where it was cancelled what was submitted goes on with its weights until `rest_streamer`.
    if error.status == VKRT_ERROR_CANCELLED:
        return error.status
    number = system_errno.errno
    if (restart(streamer, host.poll, host.poll_data, &second)
            and (error.status != VKRT_ERROR_DEVICE_LOST
                 or second.status == VKRT_ERROR_CANCELLED)):
        error[0] = second  # of a device that is lost it says no more than the first one
    system_errno.errno = number
    return error.status


# Ends

cdef int come_to_rest(Streamer* streamer, Poll poll, void* data, Error* error) noexcept nogil:
    """Lets the device finish what was submitted, and waits for it. The thread rests."""
    pthread_mutex_lock(&streamer.lock)
    let_go(streamer)
    pthread_mutex_unlock(&streamer.lock)
    if finish_uploads(&streamer.uploader, error):
        return error.status
    if streamer.submitted > streamer.base:
        if complete(streamer, streamer.submitted, poll, data, error):
            return error.status
        streamer.base = streamer.submitted
    return finish(streamer, poll, data, error) if streamer.finishing else VKRT_OK


cdef int restart(Streamer* streamer, Poll poll, void* data, Error* error) noexcept nogil:
    """Ends the epoch: device and thread come to rest, and everything is reloaded.

    Cancelled itself, it is done again before the next run.
    """
    pthread_mutex_lock(&streamer.lock)
    streamer.ending = True
    pthread_cond_signal(&streamer.go)
    pthread_mutex_unlock(&streamer.lock)
    if (wait_for_thread(streamer, UINT64_MAX, poll, data, error)
            or come_to_rest(streamer, poll, data, error)):
        return error.status
    streamer.first = streamer.last_value
    if streamer.uploader.host_signaled:
        # Layers of validation take a value that was skipped for one that is to come.
        if renew_arrivals(&streamer.uploader, error):
            return error.status
        streamer.first = streamer.last_value = 0
    pthread_mutex_lock(&streamer.lock)
    streamer.failed = False
    streamer.started = streamer.arrived = 0
    streamer.ending = streamer.idle = streamer.broken = False
    pthread_cond_signal(&streamer.go)
    pthread_mutex_unlock(&streamer.lock)
    return VKRT_OK


cdef int rest_streamer(Streamer* streamer, Poll poll, void* data, Error* error) noexcept nogil:
    return restart(streamer, poll, data, error) if streamer.broken else VKRT_OK


cdef void close_streamer(Streamer* streamer) noexcept nogil:
    cdef Error error  # a device that is lost is at rest
    # In a forked child there is no thread.
    cdef bint inherited = streamer.device != NULL and streamer.device.calls.inherited
    if streamer.has_thread and not inherited:
        pthread_mutex_lock(&streamer.lock)
        streamer.stopping = True
        pthread_cond_signal(&streamer.go)
        pthread_mutex_unlock(&streamer.lock)
        join_thread(streamer.thread)
        if streamer.broken:
            come_to_rest(streamer, NULL, NULL, &error)
    close_uploader(&streamer.uploader)
    close_fence(&streamer.finished)
    close_timeline(&streamer.computed)
    if streamer.has_lock and not inherited:
        pthread_cond_destroy(&streamer.news)
        pthread_cond_destroy(&streamer.go)
        pthread_mutex_destroy(&streamer.lock)
    free(streamer.values)
    memset(streamer, 0, sizeof(streamer[0]))
