from vkrt.core cimport reader as core
from vkrt.core.error cimport Error
from vkrt.core.pieces cimport Job
from vkrt.memory.packing cimport Packing
from vkrt.memory.source cimport Source

cdef class Transfer:
    cdef Job job
    cdef readonly Packing packing
    cdef readonly str name

cdef class Reader:
    cdef core.Reader reader
    cdef readonly str strategy
    cdef list sources
    cdef list views
    cdef bint closed

    cdef int read(self, Transfer transfer) except -1 nogil
    cdef Source _source_of(self, const Error* error, const Job* failed)
    cdef int fail(self, int status, const Error* error, const Job* failed, int number) except -1
    cdef int _check_open(self) except -1
    cdef int _check(self, int status, const Error* error, const Job* failed,
                    list raised) except -1
