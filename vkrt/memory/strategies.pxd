# cython: language_level=3

from libc.stdint cimport uint64_t

from vkrt.memory.source cimport Source

cdef enum:
    # Instead of an errno: the file ends before the last byte wanted.
    TRUNCATED = -1
    # Why is in the source's `failure`.
    FAILED = -3

# A file and the way its bytes are brought into memory. Numbers of bytes throughout; every function
# may be called by several threads at once.
cdef struct File:
    int fd  # -1: the bytes are in memory
    size_t step  # bytes that the system reads ahead when it is asked once
    bint tells_cached  # whether `in_cache` can be believed
    bint forget  # takes what was consumed out of the system's cache
    uint64_t asked  # bytes that the system was asked to read ahead
    uint64_t forgotten  # bytes that it was asked to take out of its cache
    size_t start  # of the first byte in the file
    size_t skew  # from the beginning of its page to the first byte
    const char* data  # the mapping or the buffer
    void* source  # a `Source` whose bytes are fetched; not owned
    size_t nbytes
    # The last range that was asked for long before its use.
    size_t asked_from
    size_t asked_to
    # Where the bytes are: `place`, filled (only if `in_place`), or the mapping.
    # NULL: `error` is an errno or TRUNCATED.
    const char* (*fetch)(File*, size_t offset, size_t nbytes, char* place,
                         int* error) noexcept nogil
    # Asks the system to read a range that will be wanted soon.
    void (*ahead)(File*, size_t offset, size_t nbytes) noexcept nogil
    # The range has been consumed.
    void (*behind)(File*, size_t offset, size_t nbytes) noexcept nogil
    bint in_place


cdef void fail_after(uint64_t n) noexcept nogil
cdef bint in_cache(File* file, size_t offset, size_t nbytes) noexcept nogil
cdef void forget_range(File* file, size_t offset, size_t nbytes) noexcept nogil
cdef void ask_for(File* file, size_t offset, size_t nbytes) noexcept nogil
cdef int use_strategy(File* file, Source source, str strategy) except -1
