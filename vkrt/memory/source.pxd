from vkrt.core.error cimport Error
from vkrt.core.file cimport File

cdef class Source:
    cdef File file
    cdef readonly str name
    cdef readonly bint is_file
    cdef bint closed
    cdef int exports
    cdef object owner  # of the buffer that `held` is of
    cdef Py_buffer held
    cdef object failure  # why the bytes could not be provided last
    cdef int _check_open(self) except -1
    cdef int _check(self, int status, const Error* error) except -1
    cdef void unmap(self) noexcept

cdef object exception_of(int status, const Error* error, int number, str name)
