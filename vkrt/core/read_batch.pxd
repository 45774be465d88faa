from libc.stdint cimport uint64_t

from vkrt.core.error cimport Error
from vkrt.core.pieces cimport Job, PieceReader
from vkrt.core.poll cimport Poll

cdef enum:
    MAX_THREADS = 256
    # As TRUNCATED and others are: `Poll` has ended the work.
    STOPPED = -4

cdef struct Piece:
    Job job
    size_t before  # bytes of all pieces before it

# A list of jobs in pieces. All zeros but for the reader is an empty one.
cdef struct ReadBatch:
    PieceReader* reader
    Piece* pieces
    size_t count
    size_t capacity
    size_t nbytes  # of all jobs together
    # Of the threads at work
    uint64_t next  # index of a piece
    uint64_t stop
    uint64_t failure  # 0, or of the first piece that failed its index and code, see `note_failure`
    uint64_t asking
    size_t asked

cdef extern nogil:
    int add_job "vkrt_add_job"(ReadBatch* batch, const Job* job, Error* error)
    void free_batch "vkrt_free_batch"(ReadBatch* batch)
    bint is_warm "vkrt_is_warm"(const ReadBatch* batch)
    int run_batch "vkrt_run_batch"(ReadBatch* batch, int threads, Poll poll, void* data,
                                   Job* failed)
