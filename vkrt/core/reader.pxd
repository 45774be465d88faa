from vkrt.core.error cimport Error
from vkrt.core.file cimport File
from vkrt.core.pieces cimport Job, PieceReader
from vkrt.core.poll cimport Poll

cdef enum:
    # bytes: how far ahead of the cursor the system may be asked to read
    DEFAULT_WINDOW = 33554432

cdef struct ReaderOptions:
    int strategy  # a `Strategy`
    size_t window  # bytes that the system may be asked to read ahead
    int threads  # 0: as many as are worth it
    size_t keep_limit  # bytes of the largest file that stays in the system's cache

cdef struct Reader:
    PieceReader pieces
    int strategy
    int threads
    bint may_choose  # how many of the threads

cdef extern nogil:
    size_t cache_limit "vkrt_cache_limit"()
    int open_reader "vkrt_open_reader"(const File** files, size_t count,
                                       const ReaderOptions* options, Reader* reader, Error* error)
    void close_reader "vkrt_close_reader"(Reader* reader)

    # `failed` is the piece that an error is about.
    int run_jobs "vkrt_run_jobs"(Reader* reader, const Job* jobs, size_t count, Poll poll,
                                 void* data, Job* failed, Error* error)
    int read_job "vkrt_read_job"(Reader* reader, const Job* job, Job* failed, Error* error)
    int start_ahead "vkrt_start_ahead"(Reader* reader, size_t source, size_t offset, size_t nbytes,
                                       Error* error)
