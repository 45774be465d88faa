# cython: cdivision=True
"""The bytes of a program: a read-only mapping of its file, or somebody's memory.

Nothing is read until it is touched. The file stays open as long as the mapping, for those who read
it without touching the mapping, and its size, times and inode at the start are remembered: weights
that are read again later have to come from the same bytes.
"""

cimport libc.errno as system_errno
from libc.stdio cimport FILE, fclose, fopen, fscanf, snprintf
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset, strerror, strlen
from posix.fcntl cimport AT_FDCWD
from posix.mman cimport (
    MADV_DONTNEED, MAP_FAILED, MAP_PRIVATE, PROT_READ, madvise, mmap, munmap,
)
from posix.unistd cimport W_OK, access, close, getcwd

from vkrt.core.error cimport (
    VKRT_ERROR_FORMAT, VKRT_ERROR_MEMORY, VKRT_ERROR_SYSTEM, VKRT_OK, Error, fail,
)
from vkrt.core.system cimport (
    FileStatus, duplicate, file_status, forget, mincore, open_to_read, page_size, want_mapped,
)

cdef enum:
    # of a folder, with the zero at its end
    PATH_BYTES = 4096
    # of a name that a message quotes
    NAME_BYTES = 90
    # of the largest setting of bytes to read ahead that is believed
    MAX_AHEAD_KB = 1048576


cdef int open_file(const char* path, File* file, Error* error) noexcept nogil:
    """Opens a file and maps all of it."""
    cdef char folder[PATH_BYTES]
    cdef size_t before = 0
    if path[0] != c'/' and getcwd(folder, PATH_BYTES - 1) != NULL:
        before = strlen(folder)
        folder[before] = c'/'
        before += 1
    folder[before] = 0
    if clear(file, folder, path, error):
        return error.status
    file.path = file.names if before or path[0] == c'/' else NULL
    return map_opened(file, open_to_read(path), access(path, W_OK) == 0, 0, 0, error)


cdef int open_file_part(int fd, size_t offset, size_t nbytes, const char* name, File* file,
                        Error* error) noexcept nogil:
    """Maps a part of an open file, whose descriptor stays the caller's; 0 bytes: up to its end."""
    if clear(file, "", name, error):
        return error.status
    return map_opened(file, duplicate(fd), False, offset, nbytes, error)


cdef int use_memory(const char* data, size_t nbytes, const char* name, File* file,
                    Error* error) noexcept nogil:
    """Takes bytes that the caller keeps. Whoever has a provider sets it afterwards."""
    if clear(file, "", name, error):
        return error.status
    file.data, file.nbytes = data, nbytes
    return VKRT_OK


cdef void close_file(File* file) noexcept nogil:
    """Gives back the mapping, the file and its names; may be called twice."""
    if file.mapped:
        munmap(<void*>(file.data - file.skew), file.skew + file.nbytes)
    if file.fd >= 0:
        close(file.fd)
    free(file.names)
    file.mapped, file.fd, file.data = False, -1, NULL
    file.name = file.path = file.names = NULL


cdef int clear(File* file, const char* folder, const char* name, Error* error) noexcept nogil:
    """A file of no bytes; `names` becomes the folder's name with the name behind it."""
    cdef size_t before = strlen(folder), nbytes = strlen(name) + 1
    memset(file, 0, sizeof(file[0]))
    file.fd = -1
    file.page = page_size()
    file.names = <char*>malloc(before + nbytes)
    if file.names == NULL:
        return fail(error, VKRT_ERROR_MEMORY, "no memory for the name of a file")
    memcpy(file.names, folder, before)
    memcpy(file.names + before, name, nbytes)
    file.name = file.names + before
    return VKRT_OK


cdef int map_opened(File* file, int fd, bint is_own, size_t offset, size_t nbytes,
                    Error* error) noexcept nogil:
    """Maps a part of a file by its new descriptor, or minus the errno of the call that was to bring
    one; gives everything back where that fails."""
    cdef int status, number
    file.fd = fd if fd >= 0 else -1
    status = (map_part(file, is_own, offset, nbytes, error) if fd >= 0
              else fail_file(error, -fd, "cannot be opened", file.name))
    if status != VKRT_OK:
        number = system_errno.errno
        close_file(file)
        system_errno.errno = number
    return status


cdef int map_part(File* file, bint is_own, size_t offset, size_t nbytes,
                  Error* error) noexcept nogil:
    """Maps the part of the open file that begins at `offset`."""
    cdef void* address
    cdef size_t whole
    cdef int number = file_status(file.fd, NULL, &file.status)
    if number:
        return fail_file(error, number, "cannot be opened", file.name)
    whole = <size_t>file.status.nbytes
    if <long long>whole != file.status.nbytes:
        return fail_file(error, system_errno.EFBIG, "cannot be mapped", file.name)
    if offset > whole or nbytes > whole - offset:
        return fail(error, VKRT_ERROR_FORMAT,
                    "%s has %zu bytes, and %zu from byte %zu on are wanted", end_of_name(file.name),
                    whole, nbytes, offset)
    file.start = offset
    file.skew = offset % file.page
    nbytes = nbytes or whole - offset
    file.ahead_step = ahead_step_of(file.status.major, file.status.minor)
    # Linux pretends for files of others that it has every page of them in memory.
    file.tells_residence = is_own or file.status.is_own
    if nbytes:
        address = mmap(NULL, file.skew + nbytes, PROT_READ, MAP_PRIVATE, file.fd,
                       offset - file.skew)
        if address == MAP_FAILED:
            return fail_file(error, system_errno.errno, "cannot be mapped", file.name)
        file.data = <const char*>address + file.skew
        file.mapped = True
    file.nbytes = nbytes
    return VKRT_OK


cdef size_t ahead_step_of(unsigned int major, unsigned int minor) noexcept nogil:
    """Bytes that the system reads at least when it is asked to read ahead of a file, by the numbers
    of the file's file system."""
    cdef char path[64]
    cdef unsigned long kbytes = 0
    cdef FILE* setting
    snprintf(path, sizeof(path), "/sys/class/bdi/%u:%u/read_ahead_kb", major, minor)
    setting = fopen(path, "re")
    if setting != NULL:
        if fscanf(setting, "%lu", &kbytes) != 1:
            kbytes = 0
        fclose(setting)
    return max(<size_t>min(kbytes, <unsigned long>MAX_AHEAD_KB) << 10, <size_t>MIN_AHEAD)


cdef int check_unchanged(const File* file, Error* error) noexcept nogil:
    """Makes sure that the file still is what it was when it was opened.

    A file whose name is gone, or is not known, passes: its bytes are still there.
    """
    cdef FileStatus now
    cdef int number
    memset(&now, 0, sizeof(now))
    if file.fd < 0:
        return VKRT_OK
    number = file_status(file.fd, NULL, &now)
    if number:
        return fail_file(error, number, "cannot be looked at", file.name)
    if now.nbytes != file.status.nbytes:
        return fail(error, VKRT_ERROR_FORMAT,
                    "%s has %lld bytes and had %lld when it was opened; load the program again",
                    end_of_name(file.name), now.nbytes, file.status.nbytes)
    if now.mtime_ns != file.status.mtime_ns:
        return fail(error, VKRT_ERROR_FORMAT,
                    "%s was written to after it was opened; load the program again",
                    end_of_name(file.name))
    if file.path == NULL or file_status(AT_FDCWD, file.path, &now):
        return VKRT_OK
    if now.inode != file.status.inode or now.device != file.status.device:
        return fail(error, VKRT_ERROR_FORMAT,
                    "%s is another file than when it was opened; load the program again",
                    end_of_name(file.name))
    return VKRT_OK


cdef Py_ssize_t floor_to(const File* file, size_t offset, size_t step) noexcept nogil:
    """The last multiple of so many bytes up to an offset, counted from the first page of the
    mapping; less than 0 where the bytes begin within it."""
    return <Py_ssize_t>((offset + file.skew) // step * step) - <Py_ssize_t>file.skew


cdef void release_pages(const File* file, size_t offset, size_t nbytes) noexcept nogil:
    """Gives back the whole pages inside a range; touching them again reads the file again."""
    cdef size_t last = offset + min(nbytes, file.nbytes - min(offset, file.nbytes))
    cdef Py_ssize_t start = floor_to(file, offset + file.page - 1, file.page)
    cdef Py_ssize_t end = floor_to(file, last, file.page)
    if file.mapped and end > start:
        madvise(<void*>(file.data + start), end - start, MADV_DONTNEED)


cdef void prefetch_pages(const File* file, size_t offset, size_t nbytes) noexcept nogil:
    """Asks the system to read the pages of a range ahead of their use."""
    cdef Py_ssize_t start = floor_to(file, offset, file.page)
    if file.mapped and offset < file.nbytes:
        want_mapped(file.data + start, end_of(file, offset, nbytes) - start, file.ahead_step)


cdef size_t count_pages(const File* file, size_t offset, size_t nbytes) noexcept nogil:
    """How many pages a range touches."""
    cdef size_t end = end_of(file, offset, nbytes)
    if offset >= end:
        return 0
    return (end - floor_to(file, offset, file.page) + file.page - 1) // file.page


cdef int resident_pages(const File* file, size_t offset, size_t nbytes,
                        unsigned char* pages) noexcept nogil:
    """For every page that a range touches whether the system's cache has it: 1 or 0. Returns an
    errno, or 0."""
    cdef size_t count = count_pages(file, offset, nbytes), i
    cdef Py_ssize_t start = floor_to(file, offset, file.page)
    cdef int number = 0
    if not file.mapped:
        memset(pages, 1, count)
    elif count:
        number = mincore(file.data + start, end_of(file, offset, nbytes) - start, pages)
        for i in range(count):
            pages[i] &= 1
    return number


cdef void drop_cached_pages(const File* file, size_t offset, size_t nbytes) noexcept nogil:
    """Takes the whole pages inside a range out of the system's cache, but for those that other
    processes have mapped."""
    if file.fd >= 0:
        release_pages(file, offset, nbytes)
        forget(file.fd, file.start + offset, nbytes)


cdef size_t end_of(const File* file, size_t offset, size_t nbytes) noexcept nogil:
    """Of a range, which may reach beyond the last byte."""
    return offset + min(nbytes, file.nbytes - offset) if offset < file.nbytes else file.nbytes


cdef int fail_file(Error* error, int number, const char* what, const char* name) noexcept nogil:
    """A failure of the system, whose number stays in `errno`."""
    fail(error, VKRT_ERROR_SYSTEM, "%s: %s: %s", what, strerror(number), end_of_name(name))
    system_errno.errno = number
    return VKRT_ERROR_SYSTEM


cdef const char* end_of_name(const char* name) noexcept nogil:
    """A name, or of a long path the last parts: as much as a message has room for."""
    cdef size_t nbytes = strlen(name), k
    if nbytes <= NAME_BYTES:
        return name
    name += nbytes - NAME_BYTES
    for k in range(NAME_BYTES - 1):
        if name[k] == c'/':
            return name + k + 1
    while name[0] & 0xC0 == 0x80:  # inside of a character
        name += 1
    return name
