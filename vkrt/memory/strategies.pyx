# cython: language_level=3
# cython: cdivision=True
"""The ways a file's bytes come into memory, behind three functions: fetch, ahead, behind.

    auto        what is in the system's cache from the mapping (copying in user space is faster than
                the system's own copy, and mapping pages that are there costs little), the rest
                as by pread
    pread       into the place where they are wanted: no page faults, and no page of the file
                counts for this process
    willneed    from the mapping, which the system is asked to read a window ahead (MADV_WILLNEED)
    readahead   the same, asked for with readahead(2)
    none        from the mapping, as page faults read it

The mapping's pages are given back behind the cursor. A file that is cut while it is read is an
error for `pread`; for a mapping it is one as long as it is noticed before the page is touched.
"""

import os

from libc.errno cimport EINTR, EIO, errno
from libc.stdint cimport uint64_t
from posix.mman cimport MADV_DONTNEED, madvise
from posix.unistd cimport pread

from vkrt.memory.source cimport Source
from vkrt.memory.system cimport (
    atomic_add,
    atomic_change,
    atomic_load,
    atomic_store,
    file_size,
    forget,
    mincore,
    read_ahead,
    want,
    want_mapped,
)

# Besides "auto".
STRATEGIES = ("pread", "willneed", "readahead", "none")

cdef size_t PAGE = os.sysconf("SC_PAGESIZE")
# A fault maps the pages around it that are in memory too. Linux maps whole folios since 6.18, which
# are as large as a huge page at most.
cdef size_t AROUND = max(PAGE, <size_t>(2 << 20))
# For less than this mapping pages costs more than the system's copy.
cdef size_t SMALL = 64 << 10

# How far the pages lie apart that tell whether a range is in the cache.
cdef size_t SAMPLED = 512 << 10

# How many reads until the one that fails on purpose; 0 is never.
cdef uint64_t failing = 0


cdef void fail_after(uint64_t n) noexcept nogil:
    atomic_store(&failing, n)


cdef bint must_fail() noexcept nogil:
    cdef uint64_t n = atomic_load(&failing)
    while n:
        if atomic_change(&failing, n, n - 1):
            return n == 1
        n = atomic_load(&failing)
    return False


cdef int use_strategy(File* file, Source source, str strategy) except -1:
    """Fills in a File, but for `forget`; the source has to outlive it."""
    file.fd = source.fd
    file.start = source.start
    file.skew = source.skew
    file.forget = False
    file.data = <const char*>source.data
    file.nbytes = source.nbytes
    file.step = source.ahead_step
    file.tells_cached = source.tells_residence
    file.ahead = ahead_nothing
    file.behind = behind_nothing
    file.in_place = False
    file.source = <void*>source
    if source.is_fetched:
        file.fetch = fetch_by_key
        file.in_place = True
    elif source.fd < 0:
        file.fetch = fetch_memory
    elif strategy == "pread":
        file.fetch = fetch_pread
        file.behind = forget_range
        file.in_place = True
    elif strategy == "auto":
        file.fetch = fetch_auto
        file.behind = behind_auto
        file.in_place = True
    else:
        file.fetch = fetch_mapped
        file.behind = behind_mapped
        if strategy == "willneed":
            file.ahead = ahead_mapped
        elif strategy == "readahead":
            file.ahead = ahead_file
    return 0


cdef const char* fetch_memory(File* file, size_t offset, size_t nbytes, char* place,
                              int* error) noexcept nogil:
    return file.data + offset


cdef const char* fetch_by_key(File* file, size_t offset, size_t nbytes, char* place,
                              int* error) noexcept nogil:
    if must_fail():
        error[0] = EIO
        return NULL
    error[0] = copy_fetched(file.source, offset, nbytes, place)
    return NULL if error[0] else place


cdef int copy_fetched(void* fetched, size_t offset, size_t nbytes, char* place) noexcept with gil:
    cdef Source source = <Source>fetched
    try:
        source.copy_to(offset, nbytes, place)
        return 0
    except BaseException as failure:
        source.failure = failure
        return FAILED


cdef const char* fetch_pread(File* file, size_t offset, size_t nbytes, char* place,
                             int* error) noexcept nogil:
    if must_fail():
        error[0] = EIO
        return NULL
    return place if read_fully(file.fd, file.start + offset, nbytes, place, error) else NULL


cdef bint read_fully(int fd, size_t offset, size_t nbytes, char* place, int* error) noexcept nogil:
    """Reads `nbytes` into `place`; False if the file or the system does not give them."""
    cdef size_t done = 0
    cdef ssize_t got
    while done < nbytes:
        got = pread(fd, place + done, nbytes - done, offset + done)
        if got > 0:
            done += got
        elif got == 0:
            error[0] = TRUNCATED
            return False
        elif errno != EINTR:
            error[0] = errno
            return False
    return True


cdef const char* fetch_mapped(File* file, size_t offset, size_t nbytes, char* place,
                              int* error) noexcept nogil:
    # Touching a page behind the end of the file kills the process.
    cdef long long size = file_size(file.fd)
    if must_fail():
        error[0] = EIO
    elif size < 0:
        error[0] = <int>-size
    elif <size_t>size < file.start + offset + nbytes:
        error[0] = TRUNCATED
    else:
        return file.data + offset
    return NULL


cdef const char* fetch_auto(File* file, size_t offset, size_t nbytes, char* place,
                            int* error) noexcept nogil:
    if file.tells_cached and nbytes >= SMALL and in_cache(file, offset, nbytes):
        return fetch_mapped(file, offset, nbytes, place, error)
    return fetch_pread(file, offset, nbytes, place, error)


cdef bint in_cache(File* file, size_t offset, size_t nbytes) noexcept nogil:
    """Whether the system's cache seems to have a range: some of its pages, the last one too.

    Files of others may seem to be there always, see `tells_cached`.
    """
    cdef Py_ssize_t page = floor_to(PAGE, file, offset)
    cdef Py_ssize_t last = floor_to(PAGE, file, offset + max(nbytes, <size_t>1) - 1)
    cdef unsigned char there
    while True:
        if mincore(file.data + page, 1, &there) or not there & 1:
            return False
        if page == last:
            return True
        page = min(page + <Py_ssize_t>SAMPLED, last)


cdef Py_ssize_t floor_to(size_t step, File* file, size_t offset) noexcept nogil:
    """The last multiple of so many bytes up to an offset, counted from the first page of the
    mapping; less than 0 where the bytes begin within it."""
    return <Py_ssize_t>((offset + file.skew) // step * step) - <Py_ssize_t>file.skew


cdef void ahead_nothing(File* file, size_t offset, size_t nbytes) noexcept nogil:
    pass


cdef void ahead_mapped(File* file, size_t offset, size_t nbytes) noexcept nogil:
    cdef Py_ssize_t start = floor_to(PAGE, file, offset)
    want_mapped(file.data + start, offset + nbytes - start, file.step)
    atomic_add(&file.asked, nbytes)


cdef void ahead_file(File* file, size_t offset, size_t nbytes) noexcept nogil:
    read_ahead(file.fd, file.start + offset, nbytes, file.step)
    atomic_add(&file.asked, nbytes)


cdef void ask_for(File* file, size_t offset, size_t nbytes) noexcept nogil:
    """Asks for a range without waiting for any of it."""
    want(file.fd, file.start + offset, nbytes, file.step)
    atomic_add(&file.asked, nbytes)


cdef void behind_nothing(File* file, size_t offset, size_t nbytes) noexcept nogil:
    pass


cdef void behind_auto(File* file, size_t offset, size_t nbytes) noexcept nogil:
    if nbytes >= SMALL:
        behind_mapped(file, offset, nbytes)
    else:
        forget_range(file, offset, nbytes)


cdef void behind_mapped(File* file, size_t offset, size_t nbytes) noexcept nogil:
    # What faults mapped around the range goes too; pages of it that are wanted again, by the next
    # piece, are faulted in again.
    cdef Py_ssize_t start = max(floor_to(AROUND, file, offset), -<Py_ssize_t>file.skew)
    cdef Py_ssize_t end = min(floor_to(AROUND, file, offset + nbytes + AROUND - 1),
                              <Py_ssize_t>file.nbytes)
    madvise(<void*>(file.data + start), end - start, MADV_DONTNEED)
    forget_range(file, offset, nbytes)


cdef void forget_range(File* file, size_t offset, size_t nbytes) noexcept nogil:
    """Takes all pages of a range out of the system's cache, where that is wanted of the file."""
    cdef size_t first = file.start + offset
    cdef size_t start = first // PAGE * PAGE
    if file.forget and file.fd >= 0 and nbytes:
        forget(file.fd, start, (first + nbytes + PAGE - 1) // PAGE * PAGE - start)
        atomic_add(&file.forgotten, nbytes)
