# cython: language_level=3


cdef class Source:
    cdef const unsigned char* data
    cdef readonly size_t nbytes
    cdef readonly str name
    cdef bint mapped
    cdef bint closed
    cdef int exports
    cdef object owner
    cdef Py_buffer held
    cdef void release_pages(self, size_t offset, size_t nbytes) noexcept nogil
    cdef void want_pages(self, size_t offset, size_t nbytes) noexcept nogil
    cdef void unmap(self) noexcept
