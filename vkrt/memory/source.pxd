# cython: language_level=3


cdef class Source:
    cdef const unsigned char* data
    cdef readonly size_t nbytes
    cdef readonly str name
    cdef readonly long long mtime_ns
    cdef readonly unsigned long long inode
    cdef unsigned long long filesystem
    cdef str path  # absolute; None for a buffer
    cdef int fd  # open as long as the mapping; -1 for a buffer
    cdef size_t ahead_step  # what the system reads ahead at most when it is asked once
    cdef bint tells_residence  # whether `resident` can be believed
    cdef bint mapped
    cdef bint closed
    cdef int exports
    cdef object owner
    cdef Py_buffer held
    cdef bint is_fetched  # `data` is NULL, and `copy_to` brings the bytes
    cdef object failure  # why `copy_to` has failed last
    cdef int _check_open(self) except -1
    cdef int copy_to(self, size_t offset, size_t nbytes, char* place) except -1
    cdef void unmap(self) noexcept
