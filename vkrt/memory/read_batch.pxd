# cython: language_level=3

from libc.stdint cimport uint64_t

from vkrt.memory.pieces cimport Job, PieceReader

cdef struct Piece:
    Job job
    size_t transfer  # index in the list
    size_t before  # bytes of all pieces before it


cdef class ReadBatch:
    cdef PieceReader reader
    cdef list names
    cdef list failures
    cdef Piece* pieces
    cdef size_t count
    cdef size_t capacity
    cdef readonly size_t nbytes
    cdef uint64_t next
    cdef uint64_t stop
    cdef uint64_t working  # threads in `advance`
    cdef uint64_t asking
    cdef size_t asked
    cdef int add(self, const Job* job, str name) except -1
    cdef bint is_warm(self) noexcept nogil
    cdef bint advance(self, size_t* nbytes) noexcept nogil
    cdef bint do_next(self, size_t* nbytes) noexcept nogil
    cdef void ahead(self, size_t index) noexcept nogil
    cdef void forget_all(self) noexcept nogil
