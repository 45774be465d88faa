# cython: language_level=3

from libc.stdint cimport uint64_t

from vkrt.core.strided_copy cimport StridedCopy
from vkrt.memory.scratch cimport ScratchPool
from vkrt.memory.strategies cimport File

# What a transfer asks for, and what a piece of it does.
cdef struct Job:
    size_t source
    size_t offset
    size_t nbytes
    char* target  # of a packed transfer: the start of the weight
    const StridedCopy* copy  # NULL: a plain copy
    size_t first  # parts of the copy
    size_t parts


cdef class PieceReader:
    cdef readonly size_t window
    cdef list sources
    cdef list views
    cdef File* files
    cdef size_t file_count
    cdef ScratchPool scratch
    cdef uint64_t bytes_read
    cdef uint64_t reads
    cdef uint64_t read_time
    cdef uint64_t pack_time

    cdef int open_files(self, sources, str strategy) except -1
    cdef void close_files(self) noexcept
    cdef int check(self, const Job* job) noexcept nogil
    cdef size_t piece_of(self, const Job* job, size_t done, Job* piece) noexcept nogil
    cdef int carry(self, const Job* piece) noexcept nogil
    cdef int carry_all(self, const Job* job, Job* failed) noexcept nogil
    cdef void ahead(self, size_t source, size_t offset, size_t nbytes) noexcept nogil
    cdef object error_of(self, const Job* job, str name, int error)
