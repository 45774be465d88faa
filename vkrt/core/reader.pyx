# cython: cdivision=True
"""Reader: brings bytes of files to where they are wanted, packing them on the way if asked to.

A job is carried out in pieces. Threads take pieces in the order of the list; each reads its piece
(`strategies` has the ways), packs it out of scratch memory that fits the processor's cache, and
goes on.
"""

from libc.stdint cimport SIZE_MAX
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from vkrt.core.atomic cimport atomic_change64, atomic_write64
from vkrt.core.error cimport (
    VKRT_ERROR_CANCELLED, VKRT_ERROR_INPUT, VKRT_ERROR_MEMORY, VKRT_OK, Error, fail,
)
from vkrt.core.file cimport File
from vkrt.core.pieces cimport NO_SOURCE, Job, carry_job, fail_job, free_idle_scratch
from vkrt.core.poll cimport Poll
from vkrt.core.read_batch cimport (
    MAX_THREADS, STOPPED, ReadBatch, add_job, free_batch, is_warm, run_batch,
)
from vkrt.core.strategies cimport (
    STRATEGY_AUTO, STRATEGY_NONE, STRATEGY_PREAD, FileReader, ask_for, strategy_name, use_strategy,
)
from vkrt.core.system cimport memory_size

cdef enum:
    # Several reads at once keep a disk busy, whoever waits for them.
    DISK_THREADS = 4
    # bytes, below which another thread is not worth starting
    PER_THREAD = 1048576


cdef size_t cache_limit() noexcept nogil:
    """Bytes of the largest file that stays in the system's cache by default.

    A quarter of the machine's memory: a larger one would push out what other programs use, to
    leave behind what this one has just stored elsewhere.
    """
    return <size_t>min(memory_size() // 4, <unsigned long long>SIZE_MAX)


cdef int open_reader(const File** files, size_t count, const ReaderOptions* options,
                     Reader* reader, Error* error) noexcept nogil:
    """Takes up files, which have to stay open until `close_reader`."""
    cdef size_t i
    memset(reader, 0, sizeof(reader[0]))
    if strategy_name(options.strategy) == NULL or options.window < 1 \
            or not 0 <= options.threads <= MAX_THREADS:
        return fail(error, VKRT_ERROR_INPUT, "strategy %d, a window of %zu bytes, %d threads: "
                    "expected a strategy, at least 1 byte and 1 to %d threads", options.strategy,
                    options.window, options.threads, <int>MAX_THREADS)
    reader.strategy = options.strategy
    reader.threads = options.threads
    reader.may_choose = options.threads == 0
    if reader.may_choose:
        reader.threads = DISK_THREADS if options.strategy == STRATEGY_AUTO \
            or options.strategy == STRATEGY_PREAD else 1
    reader.pieces.window = options.window
    reader.pieces.files = <FileReader*>calloc(max(count, <size_t>1), sizeof(FileReader))
    if reader.pieces.files == NULL:
        return fail(error, VKRT_ERROR_MEMORY, "no memory for %zu files", count)
    reader.pieces.file_count = count
    for i in range(count):
        use_strategy(&reader.pieces.files[i], files[i], options.strategy,
                     files[i].nbytes > options.keep_limit)
    return VKRT_OK


cdef void close_reader(Reader* reader) noexcept nogil:
    """Frees everything but the files; may be called twice."""
    free_idle_scratch(&reader.pieces.scratch)
    free(reader.pieces.files)
    reader.pieces.files, reader.pieces.file_count = NULL, 0


cdef int run_jobs(Reader* reader, const Job* jobs, size_t count, Poll poll, void* data,
                  Job* failed, Error* error) noexcept nogil:
    """Carries out jobs, started in the order of the list; returns when all are done.

    One thread at a time may call this, others `read_job` meanwhile.
    """
    cdef ReadBatch batch
    cdef size_t i
    cdef int status = VKRT_OK, code = 0
    memset(&batch, 0, sizeof(batch))
    memset(failed, 0, sizeof(failed[0]))
    batch.reader = &reader.pieces
    for i in range(count):
        if status == VKRT_OK:
            status = add_job(&batch, &jobs[i], error)
    if status == VKRT_OK:
        code = run_batch(&batch, threads_for(reader, &batch), poll, data, failed)
        free_idle_scratch(&reader.pieces.scratch)
    free_batch(&batch)
    if code == STOPPED:
        return fail(error, VKRT_ERROR_CANCELLED, "reading was stopped by the caller")
    return fail_job(&reader.pieces, failed, code, error) if code else status


cdef int threads_for(const Reader* reader, const ReadBatch* batch) noexcept nogil:
    cdef size_t worth = max(batch.nbytes // PER_THREAD, <size_t>1)
    cdef int threads = <int>min(<size_t>reader.threads, worth)
    if threads > 1 and reader.may_choose and is_warm(batch):
        # Nobody waits for a disk, and one processor copies nearly as fast as the memory can.
        return 1
    return threads


cdef int read_job(Reader* reader, const Job* job, Job* failed, Error* error) noexcept nogil:
    """Carries out a job on the calling thread."""
    cdef int code = carry_job(&reader.pieces, job, failed)
    return fail_job(&reader.pieces, failed, code, error) if code else VKRT_OK


cdef int start_ahead(Reader* reader, size_t source, size_t offset, size_t nbytes,
                     Error* error) noexcept nogil:
    """Asks the system to read a range, a window of it at most, and does not wait for it.

    For what is read long after this call. "none" does not take it up. Of calls that go forward in a
    file those are left out of which half a window has been asked already: each costs a look at all
    of its pages.
    """
    cdef FileReader* file
    cdef Job job
    cdef size_t window = reader.pieces.window, start = offset, end
    if source >= reader.pieces.file_count:
        memset(&job, 0, sizeof(job))
        job.source = source
        return fail_job(&reader.pieces, &job, NO_SOURCE, error)
    file = &reader.pieces.files[source]
    if file.file.fd < 0 or reader.strategy == STRATEGY_NONE or offset >= file.file.nbytes \
            or not atomic_change64(&file.asking, 0, 1):  # another thread is about it
        return VKRT_OK
    end = offset + min(nbytes, min(window, file.file.nbytes - offset))
    if file.asked_from <= offset < file.asked_to:
        start = file.asked_to
        if start - offset > window // 2:
            start = end
    if start < end:
        file.asked_from, file.asked_to = offset, end
    atomic_write64(&file.asking, 0)
    if start < end:
        ask_for(file, start, end - start)
    return VKRT_OK
