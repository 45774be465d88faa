# cython: cdivision=True
"""A list of jobs at work: its pieces, taken in order by any number of threads."""

from libc.stdint cimport SIZE_MAX, uint32_t, uint64_t
from libc.stdlib cimport free, realloc

from vkrt.core.atomic cimport atomic_add64, atomic_change64, atomic_read64, atomic_write64
from vkrt.core.error cimport VKRT_ERROR_MEMORY, VKRT_OK, Error, fail
from vkrt.core.file cimport File
from vkrt.core.pieces cimport Job, carry_piece, check_job, fail_job, piece_of
from vkrt.core.strategies cimport FileReader, forget_range, in_cache
from vkrt.core.system cimport now
from vkrt.core.threads cimport join_thread, pthread_t, start_thread

cdef enum:
    # nanoseconds between two calls of a `Poll`
    POLLED = 20000000
    # how many pieces of a list tell whether it is in the system's cache
    WARM_SAMPLES = 16


cdef int add_job(ReadBatch* batch, const Job* job, Error* error) noexcept nogil:
    """Appends the pieces of a job, or refuses it where there are no such bytes."""
    cdef Job piece
    cdef Piece* pieces
    cdef size_t done, capacity
    cdef int code = check_job(batch.reader, job)
    if code:
        return fail_job(batch.reader, job, code, error)
    done = piece_of(job, 0, &piece)
    while done:
        if batch.count == batch.capacity:
            capacity = 2 * batch.capacity + 16
            pieces = <Piece*>realloc(batch.pieces, capacity * sizeof(Piece))
            if pieces == NULL:
                return fail(error, VKRT_ERROR_MEMORY, "no memory for a list of %zu reads", capacity)
            batch.pieces, batch.capacity = pieces, capacity
        batch.pieces[batch.count].job = piece
        batch.pieces[batch.count].before = batch.nbytes
        batch.nbytes += piece.nbytes
        batch.count += 1
        done = piece_of(job, done, &piece)
    return VKRT_OK


cdef void free_batch(ReadBatch* batch) noexcept nogil:
    free(batch.pieces)
    batch.pieces, batch.count, batch.capacity = NULL, 0, 0


cdef bint is_warm(const ReadBatch* batch) noexcept nogil:
    """Whether the bytes are in memory, as far as some of the pieces can tell."""
    cdef size_t i = 0
    cdef const Job* job
    cdef const File* file
    while i < batch.count:
        job = &batch.pieces[i].job
        file = batch.reader.files[job.source].file
        if file.fd >= 0 and not (file.tells_residence
                                 and in_cache(file, job.offset, job.nbytes)):
            return False
        i += batch.count // WARM_SAMPLES + 1
    return True


cdef int run_batch(ReadBatch* batch, int threads, Poll poll, void* data,
                   Job* failed) noexcept nogil:
    """Does everything, once; no thread is at work any more when it returns.

    The calling thread is one of `threads`, and makes do with those that the system has.

    Returns:
        0, STOPPED, or the code of the first piece of those that failed, which `failed` then has.
    """
    cdef pthread_t others[MAX_THREADS]
    cdef int started = 0, code = 0
    while started < min(threads, <int>MAX_THREADS) - 1 \
            and start_thread(&others[started], work, batch, "vkrt-reader") == 0:
        started += 1
    if work_here(batch, poll, data):
        code = STOPPED
        atomic_write64(&batch.stop, 1)
    while started:
        started -= 1
        join_thread(others[started])
    if code == 0 and batch.failure:
        failed[0] = batch.pieces[(batch.failure >> 32) - 1].job
        code = <int><uint32_t>batch.failure
    if code == 0:
        forget_all(batch)
    return code


cdef bint work_here(ReadBatch* batch, Poll poll, void* data) noexcept nogil:
    """Pieces until there are none, or one failed; True if `poll` said so."""
    cdef uint64_t polled = now()
    while do_next(batch):
        if poll != NULL and now() - polled >= POLLED:
            if poll(data):
                return True
            polled = now()
    return False


cdef void* work(void* batch) noexcept nogil:
    """The same in a thread of its own."""
    while do_next(<ReadBatch*>batch):
        pass
    return NULL


cdef bint do_next(ReadBatch* batch) noexcept nogil:
    """Does the next piece; False where there is none, or one failed."""
    cdef uint64_t index
    cdef int code
    if atomic_read64(&batch.stop):
        return False
    index = atomic_add64(&batch.next, 1) - 1
    if index >= batch.count:
        return False
    ahead(batch, index)
    code = carry_piece(batch.reader, &batch.pieces[index].job)
    if code:
        note_failure(batch, index, code)
    return code == 0


cdef void note_failure(ReadBatch* batch, uint64_t index, int code) noexcept nogil:
    """Keeps the failure of the first piece, whichever thread meets it when: its index, from 1,
    in the upper half of the number, the code in the lower."""
    cdef uint64_t failure = (index + 1) << 32 | <uint32_t>code
    cdef uint64_t before = atomic_read64(&batch.failure)
    while (before == 0 or failure < before) \
            and not atomic_change64(&batch.failure, before, failure):
        before = atomic_read64(&batch.failure)
    atomic_write64(&batch.stop, 1)


cdef Piece* end_of_range(Piece* piece, const Piece* last, size_t limit,
                         size_t* nbytes) noexcept nogil:
    """Goes over pieces that follow each other in a file and end within the first `limit` bytes of
    the list. Returns the first one behind them; `nbytes` is what they have."""
    cdef size_t source = piece.job.source, offset = piece.job.offset, end = offset
    while (piece < last and piece.before + piece.job.nbytes <= limit
           and piece.job.source == source and piece.job.offset == end):
        end += piece.job.nbytes
        piece += 1
    nbytes[0] = end - offset
    return piece


cdef void ahead(ReadBatch* batch, size_t index) noexcept nogil:
    """Has the system read the pieces from the `index`-th on, up to a window."""
    cdef Piece* piece
    cdef Piece* last = batch.pieces + batch.count
    cdef size_t before = batch.pieces[index].before
    cdef size_t limit = before + batch.reader.window
    cdef size_t source, offset, nbytes
    cdef FileReader* file
    if not atomic_change64(&batch.asking, 0, 1):
        return  # another thread is about it
    batch.asked = max(batch.asked, index)
    piece = batch.pieces + batch.asked
    # Asked in halves of the window: each time costs a look at all of its pages.
    if piece < last and piece.before <= before + batch.reader.window // 2:
        while piece < last and piece.before + piece.job.nbytes <= limit:
            source, offset = piece.job.source, piece.job.offset
            piece = end_of_range(piece, last, limit, &nbytes)
            file = &batch.reader.files[source]
            file.ahead(file, offset, nbytes)
        batch.asked = piece - batch.pieces
    atomic_write64(&batch.asking, 0)


cdef void forget_all(ReadBatch* batch) noexcept nogil:
    """Takes what was consumed out of the cache, with the pages that pieces shared."""
    cdef Piece* piece = batch.pieces
    cdef Piece* last = piece + batch.count
    cdef size_t source, offset, nbytes
    while piece < last:
        source, offset = piece.job.source, piece.job.offset
        piece = end_of_range(piece, last, SIZE_MAX, &nbytes)
        forget_range(&batch.reader.files[source], offset, nbytes)
