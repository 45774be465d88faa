# cython: language_level=3


cdef class Source:
    cdef const unsigned char* data
    cdef readonly size_t nbytes
    cdef readonly str name
    cdef readonly long long mtime_ns
    cdef long long ctime_ns
    cdef readonly unsigned long long inode
    cdef unsigned long long filesystem
    cdef str path  # absolute; None for a buffer, and for a part of an open file
    cdef readonly bint is_file
    cdef size_t start  # of the first byte in the file
    cdef size_t skew  # from the beginning of its page to the first byte
    cdef size_t file_nbytes  # of the whole file when it was opened
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
    cdef int _map(self, bint is_mine, size_t offset, size_t nbytes) except -1
    cdef Py_ssize_t page_of(self, size_t offset) noexcept nogil
    cdef void unmap(self) noexcept
