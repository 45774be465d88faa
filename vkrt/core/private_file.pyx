from libc.errno cimport EEXIST, EINTR, ENOENT, ESRCH, errno
from libc.stdio cimport snprintf
from libc.stdlib cimport free, getenv, malloc, realloc, strtol
from libc.string cimport memcmp, memcpy, strcmp, strlen, strrchr

from posix.fcntl cimport (
    O_CLOEXEC, O_CREAT, O_DIRECTORY, O_EXCL, O_NONBLOCK, O_RDONLY, O_WRONLY, open, openat,
)
from posix.signal cimport kill
from posix.unistd cimport close, getpid, read, write

from vkrt.core.atomic cimport atomic_add
from vkrt.core.system cimport (
    O_NOFOLLOW, PATH_MAX, FileStatus, closedir, dirent, fdopendir, file_status, mkdir, readdir,
    renameat, unlinkat,
)

cdef enum:
    HEAD_BYTES = 256
    # Bytes of a name in that of the file that is written first
    NAME_BYTES = 100
    PIECE = 1 << 20

# Files that this process has begun to write
cdef int written


cdef int open_folder(const char* path) noexcept nogil:
    """A descriptor of a folder that only this user and root change; -1 where it is another."""
    cdef FileStatus status
    cdef const char* here = b"."
    cdef int folder = open(path if path[0] != 0 else here,
                           O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
    if folder < 0:
        return -1
    if (file_status(folder, NULL, &status) == 0 and status.is_ours
            and (not status.others_write or status.is_sticky)):
        return folder
    close(folder)
    return -1


cdef const char* split(const char* path, char* folder) noexcept nogil:
    """Puts the folder of a path into room of PATH_MAX bytes; returns the name. NULL: too long."""
    cdef const char* slash = strrchr(path, c'/')
    cdef size_t size = 0
    if slash != NULL:
        size = slash - path if slash > path else 1
    if size >= <size_t>PATH_MAX:
        return NULL
    memcpy(folder, path, size)
    folder[size] = 0
    return slash + 1 if slash != NULL else path


cdef char* read_whole(int file, size_t limit, size_t* size) noexcept nogil:
    """NULL where it fails, or where there are more than `limit` bytes."""
    cdef char* data = NULL
    cdef char* larger
    cdef size_t room = 0
    cdef ssize_t got
    size[0] = 0
    while size[0] <= limit:
        if size[0] == room:
            # One byte more than there may be shows a file that is too long.
            room = min(limit + 1, room + PIECE)
            larger = <char*>realloc(data, room)
            if larger == NULL:
                break
            data = larger
        got = read(file, data + size[0], room - size[0])
        if got == 0:
            return data
        if got > 0:
            size[0] += got
        elif errno != EINTR:
            break
    free(data)
    return NULL


cdef char* read_private_file(const char* path, size_t limit, size_t* size) noexcept nogil:
    cdef char[PATH_MAX] folder
    cdef FileStatus status
    cdef char* data = NULL
    cdef const char* name = split(path, folder)
    cdef int directory = open_folder(folder) if name != NULL else -1
    cdef int file
    size[0] = 0
    if directory < 0:
        return NULL
    # A pipe would keep whoever opens it waiting.
    file = openat(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
    close(directory)
    if file < 0:
        return NULL
    if (file_status(file, NULL, &status) == 0 and status.is_regular and status.is_ours
            and not status.others_write):
        data = read_whole(file, limit, size)
    close(file)
    return data


cdef bint begins_with(int file, Part magic) noexcept nogil:
    """Whether a file that was opened is empty or begins with the magic; closes it."""
    cdef char[HEAD_BYTES] head
    cdef FileStatus status
    cdef ssize_t got = -1
    if file_status(file, NULL, &status) == 0 and status.is_regular:
        got = read(file, head, HEAD_BYTES)
    close(file)
    return got == 0 or (got >= <ssize_t>magic.size
                        and memcmp(head, magic.data, magic.size) == 0)


cdef bint is_replaceable(int directory, const char* name, Part magic) noexcept nogil:
    """Whether there is no file, an empty one, or one that begins with the magic."""
    cdef int file = openat(directory, name, O_RDONLY | O_NONBLOCK | O_CLOEXEC)
    return begins_with(file, magic) if file >= 0 else errno == ENOENT


cdef bint is_other_file(const char* path, Part magic) noexcept nogil:
    cdef int file = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)
    return file >= 0 and not begins_with(file, magic)


cdef bint is_left_over(const char* name, const char* part) noexcept nogil:
    """Whether it is a file that a process which was killed had not finished writing, of a name with
    `part` before the number of the process."""
    cdef const char* end = strrchr(name, c'-')
    cdef const char* digits = end
    cdef size_t size = strlen(part)
    cdef long writer
    if name[0] != c'.' or end == NULL:
        return False
    while digits > name and c'0' <= digits[-1] <= c'9':
        digits -= 1
    if (digits == end or end - digits > 9 or digits - name < <ptrdiff_t>size + 1
            or digits[-1] != c'-' or memcmp(digits - 1 - size, part, size) != 0):
        return False
    writer = strtol(digits, NULL, 10)
    return writer > 0 and kill(<int>writer, 0) != 0 and errno == ESRCH


cdef void* entries_of(int directory) noexcept nogil:
    """The entries of a folder from the first on, for `readdir`"""
    return fdopendir(openat(directory, b".", O_RDONLY | O_DIRECTORY | O_CLOEXEC))


cdef void remove_left_over(int directory, const char* part) noexcept nogil:
    cdef void* entries = entries_of(directory)
    cdef dirent* entry
    if entries == NULL:
        return
    entry = readdir(entries)
    while entry != NULL:
        if is_left_over(entry.d_name, part):
            unlinkat(directory, entry.d_name, 0)
        entry = readdir(entries)
    closedir(entries)


cdef bint make_folders(char* path) noexcept nogil:
    """Those that are missing, the last one private"""
    cdef size_t i
    for i in range(1, strlen(path)):
        if path[i] == c'/':
            path[i] = 0
            mkdir(path, 0o777)
            path[i] = c'/'
    return path[0] == 0 or mkdir(path, 0o700) == 0 or errno == EEXIST


cdef bint write_whole(int file, const Part* parts, int number) noexcept nogil:
    cdef size_t done
    cdef ssize_t wrote
    cdef int i
    for i in range(number):
        done = 0
        while done < parts[i].size:
            wrote = write(file, <const char*>parts[i].data + done, parts[i].size - done)
            if wrote < 0 and errno != EINTR:
                return False
            done += max(wrote, <ssize_t>0)
    return True


cdef bint put_private_file(const char* path, const Part* parts, int number,
                           Part magic) noexcept nogil:
    cdef char[PATH_MAX] folder
    cdef char[NAME_BYTES + 2] start
    cdef char[NAME_BYTES + 40] temporary
    cdef const char* name = split(path, folder)
    cdef bint done = False
    cdef int directory, file
    if name == NULL or not make_folders(folder):
        return False
    directory = open_folder(folder)
    if directory < 0:
        return False
    snprintf(start, sizeof(start), b".%s", name)
    snprintf(temporary, sizeof(temporary), b"%s-%d-%d", start, getpid(), atomic_add(&written, 1))
    if magic.size == 0 or is_replaceable(directory, name, magic):
        remove_left_over(directory, start)
        file = openat(directory, temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        if file >= 0:
            done = write_whole(file, parts, number)
            done = close(file) == 0 and done
            done = done and renameat(directory, temporary, directory, name) == 0
            if not done:
                unlinkat(directory, temporary, 0)
    close(directory)
    return done


cdef bint has_suffix(const char* name, const char* suffix) noexcept nogil:
    cdef size_t size = strlen(name)
    cdef size_t rest = strlen(suffix)
    return size >= rest and strcmp(name + size - rest, suffix) == 0


# The bytes of the files of a kind; the one that was written longest ago, but for `keep`
cdef uint64_t look_through(int directory, const char* keep, const char* suffix, char* oldest,
                           uint64_t* oldest_size) noexcept nogil:
    cdef void* entries = entries_of(directory)
    cdef dirent* entry
    cdef FileStatus status
    cdef uint64_t total = 0
    cdef long long least = 0
    oldest[0] = 0
    if entries == NULL:
        return 0
    entry = readdir(entries)
    while entry != NULL:
        if (has_suffix(entry.d_name, suffix)
                and file_status(directory, entry.d_name, &status) == 0):
            total += status.nbytes
            if strcmp(entry.d_name, keep) != 0 and (oldest[0] == 0 or status.mtime_ns < least):
                least = status.mtime_ns
                oldest_size[0] = status.nbytes
                snprintf(oldest, HEAD_BYTES, b"%s", entry.d_name)
        entry = readdir(entries)
    closedir(entries)
    return total


cdef void prune_folder(const char* folder, const char* keep, const char* suffix,
                       uint64_t most) noexcept nogil:
    cdef char[HEAD_BYTES] oldest
    cdef uint64_t size = 0
    cdef int directory = open_folder(folder)
    if directory < 0:
        return
    remove_left_over(directory, suffix)
    # Another process tidies up as well.
    while look_through(directory, keep, suffix, oldest, &size) > most and oldest[0] != 0:
        if unlinkat(directory, oldest, 0) != 0 and errno != ENOENT:
            break
    close(directory)


cdef char* cache_path(const char* name) noexcept nogil:
    cdef const char* below = b""
    cdef const char* root = getenv(b"XDG_CACHE_HOME")
    cdef size_t size
    cdef char* path
    if root == NULL or root[0] != c'/':
        below, root = b"/.cache", getenv(b"HOME")
    if root == NULL or root[0] != c'/':
        return NULL
    size = strlen(root) + strlen(name) + 20
    path = <char*>malloc(size)
    if path != NULL:
        snprintf(path, size, b"%s%s/vkrt/%s", root, below, name)
    return path


cdef void prune_folder_of(char* path, const char* suffix, unsigned long long most) noexcept nogil:
    cdef char* name = strrchr(path, c'/')
    if name != NULL:
        name[0] = 0
        prune_folder(path, name + 1, suffix, most)
        name[0] = c'/'
