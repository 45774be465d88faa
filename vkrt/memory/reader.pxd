# cython: language_level=3

from libc.stdint cimport uint64_t

from vkrt.memory.packing cimport Packing, Walk
from vkrt.memory.strategies cimport File

cdef enum:
    SCRATCHES = 16

# What a transfer asks for, and what a piece of it does.
cdef struct Job:
    size_t source
    size_t offset
    size_t nbytes
    char* target  # of a packed transfer: the start of the weight
    const Walk* walk  # NULL: a plain copy
    size_t first_row
    size_t rows


cdef class Transfer:
    cdef Job job
    cdef readonly Packing packing
    cdef readonly str name


# Memory that bytes pass through on their way to a packing.
cdef struct Scratch:
    uint64_t busy
    char* data
    size_t nbytes


cdef class Reader:
    cdef readonly str strategy
    cdef readonly size_t window
    cdef readonly int threads
    cdef readonly bint direct
    cdef readonly list notes
    cdef bint may_choose  # how many threads
    cdef bint closed
    cdef list sources
    cdef list views
    cdef File* files
    cdef size_t file_count
    cdef Scratch scratches[SCRATCHES]
    cdef uint64_t scratch_now
    cdef uint64_t scratch_most
    cdef uint64_t bytes_read
    cdef uint64_t reads
    cdef uint64_t read_time
    cdef uint64_t pack_time

    cdef int read(self, Transfer transfer) except -1 nogil
    cdef int copy(self, size_t source, size_t offset, size_t nbytes, char* target) except -1 nogil
    cdef void ahead(self, size_t source, size_t offset, size_t nbytes) noexcept nogil
    cdef size_t piece_of(self, const Job* job, size_t done, Job* piece) noexcept nogil
    cdef int carry(self, const Job* piece) noexcept nogil
    cdef int check(self, const Job* job) noexcept nogil
    cdef int carry_all(self, const Job* job, Job* failed) noexcept nogil
    cdef object error_of(self, const Job* job, str name, int error)
    cdef char* acquire(self, size_t nbytes, int* slot) noexcept nogil
    cdef void release(self, char* data, size_t nbytes, int slot) noexcept nogil
    cdef void free_scratch(self) noexcept nogil
    cdef int _check_open(self) except -1
    cdef void _close_files(self) noexcept
