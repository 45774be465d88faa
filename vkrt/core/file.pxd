from vkrt.core.error cimport Error
from vkrt.core.system cimport FileStatus

cdef enum:
    # Linux's own setting of bytes to read ahead, where nobody has changed it
    MIN_AHEAD = 131072

# Brings bytes to `place` for those who have no file; anything but 0: it did not. May be called by
# several threads at once.
ctypedef int (*Provide)(void* provider, size_t offset, size_t nbytes, char* place) noexcept nogil

# The bytes of a program: a mapping of a part of an open file, memory of the caller's, or what a
# provider brings. Offsets count from the first of them.
cdef struct File:
    int fd  # as long as the mapping is there; -1: there is no file
    const char* data  # the mapping, or the caller's memory; NULL: a provider's, or nothing
    size_t nbytes
    size_t start  # of the first byte in the file
    size_t skew  # from the beginning of its page to the first byte
    size_t page
    size_t ahead_step  # what the system reads ahead at most when it is asked once
    bint tells_residence  # whether the system says truly what its cache has
    bint mapped
    FileStatus status  # of the whole file when it was opened
    const char* name  # for messages
    const char* path  # absolute; NULL where it is not known
    char* names  # the memory of both
    Provide provide  # NULL: the bytes are in `data`
    void* provider

cdef extern nogil:
    # Those that return a status and meet an error of the system leave its number in `errno`.
    int open_file "vkrt_open_file"(const char* path, File* file, Error* error)
    int open_file_part "vkrt_open_file_part"(int fd, size_t offset, size_t nbytes, const char* name,
                                             File* file, Error* error)
    int use_memory "vkrt_use_memory"(const char* data, size_t nbytes, const char* name, File* file,
                                     Error* error)
    void close_file "vkrt_close_file"(File* file)

    int check_unchanged "vkrt_check_unchanged"(const File* file, Error* error)
    size_t ahead_step_of "vkrt_ahead_step_of"(unsigned int major, unsigned int minor)
    Py_ssize_t floor_to "vkrt_floor_to"(const File* file, size_t offset, size_t step)
    void release_pages "vkrt_release_pages"(const File* file, size_t offset, size_t nbytes)
    void prefetch_pages "vkrt_prefetch_pages"(const File* file, size_t offset, size_t nbytes)
    size_t count_pages "vkrt_count_pages"(const File* file, size_t offset, size_t nbytes)
    int resident_pages "vkrt_resident_pages"(const File* file, size_t offset, size_t nbytes,
                                             unsigned char* pages)
    void drop_cached_pages "vkrt_drop_cached_pages"(const File* file, size_t offset, size_t nbytes)

    int fail_file "vkrt_fail_file"(Error* error, int number, const char* what, const char* name)
    const char* end_of_name "vkrt_end_of_name"(const char* name)
