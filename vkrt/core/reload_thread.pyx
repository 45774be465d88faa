# cython: cdivision=True

cimport libc.errno as system_errno
from libc.stdint cimport int64_t, uint64_t

from vkrt.core.error cimport VKRT_OK, Error
from vkrt.core.semaphore cimport raise_timeline, wait_for_value
from vkrt.core.streamer cimport PATIENCE
from vkrt.core.threads cimport (
    pthread_cond_signal, pthread_cond_wait, pthread_mutex_lock, pthread_mutex_unlock,
)
from vkrt.core.uploads cimport prefetch_weight, upload_weight


cdef void* reload_weights(void* data) noexcept nogil:
    cdef Streamer* streamer = <Streamer*>data
    cdef Error error
    cdef int status
    while wait_for_epoch(streamer):
        status = carry_on(streamer, &error)
        pthread_mutex_lock(&streamer.lock)
        if status != VKRT_OK:  # for the run that needs it
            streamer.error_number = system_errno.errno
            streamer.error = error
            streamer.failed = True
        let_go(streamer)
        streamer.idle = True
        pthread_cond_signal(&streamer.news)
        pthread_mutex_unlock(&streamer.lock)
    return NULL


cdef bint wait_for_epoch(Streamer* streamer) noexcept nogil:
    """False where there will be none."""
    cdef bint goes_on
    pthread_mutex_lock(&streamer.lock)
    while streamer.idle and not streamer.stopping:
        pthread_cond_wait(&streamer.go, &streamer.lock)
    goes_on = not streamer.stopping
    pthread_mutex_unlock(&streamer.lock)
    return goes_on


cdef int carry_on(Streamer* streamer, Error* error) noexcept nogil:
    """Reloads, in order, until this epoch ends."""
    cdef uint64_t number = 0, arrival = 0
    cdef int64_t place
    cdef int status
    cdef bint goes_on
    while True:
        place = <int64_t>(number % <uint64_t>streamer.count)
        if may_start(streamer, place, number // <uint64_t>streamer.count, &goes_on, error):
            return error.status
        if not goes_on:
            return VKRT_OK
        if upload_weight(&streamer.uploader, place, &arrival, error):
            return error.status
        number += 1
        status = VKRT_OK
        pthread_mutex_lock(&streamer.lock)
        goes_on = not (streamer.stopping or streamer.ending)
        if goes_on:
            streamer.arrived = number
            if streamer.uploader.host_signaled:
                status = raise_arrivals(streamer, streamer.first + number, error)
            else:
                streamer.values[place] = arrival
            pthread_cond_signal(&streamer.news)
        pthread_mutex_unlock(&streamer.lock)
        if status != VKRT_OK or not goes_on:
            return status


cdef bint is_ending(Streamer* streamer) noexcept nogil:
    cdef bint ends
    pthread_mutex_lock(&streamer.lock)
    ends = streamer.stopping or streamer.ending
    pthread_mutex_unlock(&streamer.lock)
    return ends


cdef bint has_begun(Streamer* streamer, uint64_t run, bint waits) noexcept nogil:
    """Whether a run has begun, by its number; for one that waits: or the epoch ends."""
    cdef bint begun
    pthread_mutex_lock(&streamer.lock)
    while (waits and streamer.started <= run and not streamer.stopping and not streamer.ending):
        pthread_cond_wait(&streamer.go, &streamer.lock)
    begun = streamer.started > run
    pthread_mutex_unlock(&streamer.lock)
    return begun


cdef int may_start(Streamer* streamer, int64_t place, uint64_t run, bint* goes_on,
                   Error* error) noexcept nogil:
    """Waits until a reload of a run may start; `goes_on` is false when the epoch ends instead."""
    cdef uint64_t ahead = <uint64_t>streamer.reloads[place].ahead
    cdef uint64_t value
    cdef bint reached = False
    goes_on[0] = True
    if run < ahead:
        goes_on[0] = not is_ending(streamer)
        return VKRT_OK
    run -= ahead
    value = (streamer.base + run * <uint64_t>streamer.submissions
             + <uint64_t>(streamer.reloads[place].after + 1))
    if has_begun(streamer, run, False) and wait_for_value(&streamer.computed, value, 0, &reached,
                                                          error):
        return error.status
    if not reached and streamer.prefetches and prefetch_weight(&streamer.uploader, place, error):
        return error.status
    has_begun(streamer, run, True)
    while not reached:
        if is_ending(streamer):
            goes_on[0] = False
            return VKRT_OK
        if wait_for_value(&streamer.computed, value, PATIENCE, &reached, error):
            return error.status
    return VKRT_OK


cdef int raise_arrivals(Streamer* streamer, uint64_t value, Error* error) noexcept nogil:
    # Vulkan does not allow to signal a value a second time.
    if value <= streamer.last_value:
        return VKRT_OK
    if raise_timeline(&streamer.uploader.arrivals, value, error):
        return error.status
    streamer.last_value = value
    return VKRT_OK


cdef void let_go(Streamer* streamer) noexcept nogil:
    cdef Error error
    cdef uint64_t value = streamer.first + streamer.started * <uint64_t>streamer.count
    streamer.stranded = (streamer.uploader.host_signaled
                         and raise_arrivals(streamer, value, &error) != VKRT_OK)
