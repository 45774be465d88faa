from libc.stdint cimport int64_t, uint64_t

from vkrt.core.error cimport Error
from vkrt.core.strategies cimport FileReader
from vkrt.core.strided_copy cimport StridedCopy

cdef enum:
    # Instead of an errno, as TRUNCATED is: there is no such source.
    NO_SOURCE = -2
    SCRATCHES = 16

# What a transfer asks for, and what a piece of it does.
cdef struct Job:
    size_t source
    size_t offset
    size_t nbytes
    char* target  # of a packed transfer: the start of the weight
    const StridedCopy* copy  # NULL: a plain copy
    size_t first  # parts of the copy
    size_t parts
    const char* name  # of the weight, for messages
    size_t name_bytes  # of that; 0: it has none

cdef struct Scratch:
    uint64_t busy
    char* data
    size_t nbytes

# Scratch memory of any number of threads, aligned to pages. All zeros is an empty one.
cdef struct ScratchPool:
    Scratch scratches[SCRATCHES]
    uint64_t held  # bytes
    uint64_t peak

# Sources, and what it takes to bring a piece of one to its place. Several threads may use it.
cdef struct PieceReader:
    size_t window  # bytes that the system may be asked to read ahead
    FileReader* files
    size_t file_count
    ScratchPool scratch
    uint64_t bytes_read
    uint64_t reads
    uint64_t read_time
    uint64_t pack_time

cdef extern nogil:
    # `room` is how many bytes may be written from the target on.
    int make_job "vkrt_make_job"(const Job* plain, size_t room, const StridedCopy* copy,
                                 int64_t first_row, int64_t rows, Job* job, Error* error)
    int make_job_of_rows "vkrt_make_job_of_rows"(const Job* plain, size_t room, size_t place,
                                                 const StridedCopy* copy, int64_t first_row,
                                                 int64_t rows, Job* job, Error* error)
    # Those that return a code return 0, an errno, TRUNCATED, NOT_PROVIDED or NO_SOURCE.
    int check_job "vkrt_check_job"(const PieceReader* reader, const Job* job)
    size_t piece_of "vkrt_piece_of"(const Job* job, size_t done, Job* piece)
    int carry_piece "vkrt_carry_piece"(PieceReader* reader, const Job* piece)
    int carry_job "vkrt_carry_job"(PieceReader* reader, const Job* job, Job* failed)
    int fail_job "vkrt_fail_job"(const PieceReader* reader, const Job* job, int code, Error* error)
    # The memory that no thread has
    void free_idle_scratch "vkrt_free_idle_scratch"(ScratchPool* pool)
