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

from libc.errno cimport EINTR, EIO, errno
from libc.stdint cimport uint64_t
from posix.mman cimport MADV_DONTNEED, madvise
from posix.unistd cimport pread

from vkrt.core.atomic cimport atomic_add64, atomic_change64, atomic_read64, atomic_write64
from vkrt.core.file cimport File, floor_to
from vkrt.core.system cimport file_size, forget, mincore, read_ahead, want, want_mapped

cdef extern from * nogil:
    """
    static const char* const vkrt_strategies[] = {"auto", "pread", "willneed", "readahead", "none"};
    """
    # By `Strategy`
    const char* const* strategy_names "vkrt_strategies"

cdef enum:
    # A fault maps the pages around it that are in memory too. Linux maps whole folios since 6.18,
    # which are as large as a huge page at most.
    AROUND = 2097152
    # bytes, for less of which mapping pages costs more than the system's copy
    SMALL = 65536
    # how far the pages lie apart that tell whether a range is in the cache
    SAMPLED = 524288

# How many reads until the one that fails on purpose; 0 is never.
cdef uint64_t failing


cdef void fail_read_after(uint64_t n) noexcept nogil:
    """Lets the n-th read from now on fail with EIO, once, for tests; 0: none."""
    atomic_write64(&failing, n)


cdef bint must_fail() noexcept nogil:
    cdef uint64_t n = atomic_read64(&failing)
    while n:
        if atomic_change64(&failing, n, n - 1):
            return n == 1
        n = atomic_read64(&failing)
    return False


cdef const char* strategy_name(int strategy) noexcept nogil:
    """Of a `Strategy`; NULL: there is none of this number."""
    return strategy_names[strategy] if 0 <= strategy <= STRATEGY_NONE else NULL


cdef void use_strategy(FileReader* reader, const File* file, int strategy,
                       bint forgets) noexcept nogil:
    """Fills `reader` in; the file has to outlive it."""
    reader.file = file
    reader.forgets = forgets
    reader.asked = reader.forgotten = reader.asking = 0
    reader.asked_from = reader.asked_to = 0
    reader.ahead = reader.behind = do_nothing
    reader.in_place = False
    if file.provide != NULL:
        reader.fetch = fetch_provided
        reader.in_place = True
    elif file.fd < 0:
        reader.fetch = fetch_memory
    elif strategy == STRATEGY_PREAD:
        reader.fetch = fetch_pread
        reader.behind = forget_range
        reader.in_place = True
    elif strategy == STRATEGY_AUTO:
        reader.fetch = fetch_auto
        reader.behind = behind_auto
        reader.in_place = True
    else:
        reader.fetch = fetch_mapped
        reader.behind = behind_mapped
        if strategy == STRATEGY_WILLNEED:
            reader.ahead = ahead_mapped
        elif strategy == STRATEGY_READAHEAD:
            reader.ahead = ahead_file


cdef const char* fetch_memory(FileReader* reader, size_t offset, size_t nbytes, char* place,
                              int* error) noexcept nogil:
    return reader.file.data + offset


cdef const char* fetch_provided(FileReader* reader, size_t offset, size_t nbytes, char* place,
                                int* error) noexcept nogil:
    if must_fail():
        error[0] = EIO
    elif reader.file.provide(reader.file.provider, offset, nbytes, place):
        error[0] = NOT_PROVIDED
    else:
        return place
    return NULL


cdef const char* fetch_pread(FileReader* reader, size_t offset, size_t nbytes, char* place,
                             int* error) noexcept nogil:
    cdef size_t done = 0
    cdef ssize_t got
    if must_fail():
        error[0] = EIO
        return NULL
    while done < nbytes:
        got = pread(reader.file.fd, place + done, nbytes - done,
                    reader.file.start + offset + done)
        if got > 0:
            done += got
        elif got == 0 or errno != EINTR:
            error[0] = TRUNCATED if got == 0 else errno
            return NULL
    return place


cdef const char* fetch_mapped(FileReader* reader, size_t offset, size_t nbytes, char* place,
                              int* error) noexcept nogil:
    # Touching a page behind the end of the file kills the process.
    cdef long long size = file_size(reader.file.fd)
    if must_fail():
        error[0] = EIO
    elif size < 0:
        error[0] = <int>-size
    elif <size_t>size < reader.file.start + offset + nbytes:
        error[0] = TRUNCATED
    else:
        return reader.file.data + offset
    return NULL


cdef const char* fetch_auto(FileReader* reader, size_t offset, size_t nbytes, char* place,
                            int* error) noexcept nogil:
    if reader.file.tells_residence and nbytes >= SMALL and in_cache(reader.file, offset, nbytes):
        return fetch_mapped(reader, offset, nbytes, place, error)
    return fetch_pread(reader, offset, nbytes, place, error)


cdef bint in_cache(const File* file, size_t offset, size_t nbytes) noexcept nogil:
    """Whether the system's cache seems to have a range: some of its pages, the last one too.

    Files of others may seem to be there always, see `tells_residence`.
    """
    cdef Py_ssize_t page = floor_to(file, offset, file.page)
    cdef Py_ssize_t last = floor_to(file, offset + max(nbytes, <size_t>1) - 1, file.page)
    cdef unsigned char there
    while True:
        if mincore(file.data + page, 1, &there) or not there & 1:
            return False
        if page == last:
            return True
        page = min(page + <Py_ssize_t>SAMPLED, last)


cdef void do_nothing(FileReader* reader, size_t offset, size_t nbytes) noexcept nogil:
    pass


cdef void ahead_mapped(FileReader* reader, size_t offset, size_t nbytes) noexcept nogil:
    cdef Py_ssize_t start = floor_to(reader.file, offset, reader.file.page)
    want_mapped(reader.file.data + start, offset + nbytes - start, reader.file.ahead_step)
    atomic_add64(&reader.asked, nbytes)


cdef void ahead_file(FileReader* reader, size_t offset, size_t nbytes) noexcept nogil:
    read_ahead(reader.file.fd, reader.file.start + offset, nbytes, reader.file.ahead_step)
    atomic_add64(&reader.asked, nbytes)


cdef void ask_for(FileReader* reader, size_t offset, size_t nbytes) noexcept nogil:
    """Asks for a range without waiting for any of it."""
    want(reader.file.fd, reader.file.start + offset, nbytes, reader.file.ahead_step)
    atomic_add64(&reader.asked, nbytes)


cdef void behind_auto(FileReader* reader, size_t offset, size_t nbytes) noexcept nogil:
    if nbytes >= SMALL:
        behind_mapped(reader, offset, nbytes)
    else:
        forget_range(reader, offset, nbytes)


cdef void behind_mapped(FileReader* reader, size_t offset, size_t nbytes) noexcept nogil:
    # What faults mapped around the range goes too; pages of it that are wanted again, by the next
    # piece, are faulted in again.
    cdef const File* file = reader.file
    cdef Py_ssize_t start = max(floor_to(file, offset, AROUND), -<Py_ssize_t>file.skew)
    cdef Py_ssize_t end = min(floor_to(file, offset + nbytes + AROUND - 1, AROUND),
                              <Py_ssize_t>file.nbytes)
    madvise(<void*>(file.data + start), end - start, MADV_DONTNEED)
    forget_range(reader, offset, nbytes)


cdef void forget_range(FileReader* reader, size_t offset, size_t nbytes) noexcept nogil:
    """Takes all pages of a range out of the system's cache, where that is wanted."""
    cdef size_t first = reader.file.start + offset, page = reader.file.page
    cdef size_t start = first // page * page
    if reader.forgets and reader.file.fd >= 0 and nbytes:
        forget(reader.file.fd, start, (first + nbytes + page - 1) // page * page - start)
        atomic_add64(&reader.forgotten, nbytes)
