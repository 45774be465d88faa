from libc.stdint cimport int64_t

from vkrt.core.error cimport Error
from vkrt.core.flat cimport Type
from vkrt.core.records cimport Records

# Of every type: the names of its parts, and the class of its values where it has one
cdef list NAMES
cdef list CLASSES


cdef class File:

    cdef Records records
    cdef bytes data  # what they lie in


cdef class Reader:

    cdef const Records* records
    cdef list known

    cdef object read(self, const Type* kind, const int64_t* at)
    cdef object record(self, const Type* kind, const int64_t* at)
    cdef tuple rows(self, const Type* kind, int64_t first, int64_t count)


cdef int check_status(int status, Error* error) except -1
