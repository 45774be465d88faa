from libc.stdint cimport uint64_t

from vkrt.core.file cimport File

cdef enum:
    # Instead of an errno: the file ends before the last byte wanted.
    TRUNCATED = -1
    # The provider did not bring the bytes.
    NOT_PROVIDED = -3

cdef enum Strategy:
    STRATEGY_AUTO
    STRATEGY_PREAD
    STRATEGY_WILLNEED
    STRATEGY_READAHEAD
    STRATEGY_NONE

# A file and the way its bytes are brought into memory. Numbers of bytes throughout; every function
# may be called by several threads at once.
cdef struct FileReader:
    const File* file
    bint forgets  # takes what was consumed out of the system's cache
    uint64_t asked  # bytes that the system was asked to read ahead
    uint64_t forgotten  # bytes that it was asked to take out of its cache
    # The last range that was asked for long before its use, and whether a thread is about it.
    size_t asked_from
    size_t asked_to
    uint64_t asking
    # Where the bytes are: `place`, filled (only if `in_place`), or the mapping.
    # NULL: `error` is an errno, TRUNCATED or NOT_PROVIDED.
    const char* (*fetch)(FileReader*, size_t offset, size_t nbytes, char* place,
                         int* error) noexcept nogil
    # Asks the system to read a range that will be wanted soon.
    void (*ahead)(FileReader*, size_t offset, size_t nbytes) noexcept nogil
    # The range has been consumed.
    void (*behind)(FileReader*, size_t offset, size_t nbytes) noexcept nogil
    bint in_place

cdef extern nogil:
    const char* strategy_name "vkrt_strategy_name"(int strategy)
    void use_strategy "vkrt_use_strategy"(FileReader* reader, const File* file, int strategy,
                                          bint forgets)
    bint in_cache "vkrt_in_cache"(const File* file, size_t offset, size_t nbytes)
    void ask_for "vkrt_ask_for"(FileReader* reader, size_t offset, size_t nbytes)
    void forget_range "vkrt_forget_range"(FileReader* reader, size_t offset, size_t nbytes)
    void fail_read_after "vkrt_fail_read_after"(uint64_t n)
