# cython: language_level=3
"""Regions: address space for blocks, which of it is free, and what the system is asked about it.

A region is address space without memory behind it. What no block uses is inaccessible, which also
keeps the system from laying a huge page over it. An arena (`vkrt.memory.host_arena`) decides where
blocks lie and which pages become accessible, huge or free.
"""

import os
from bisect import bisect_left

cimport cython
from libc.errno cimport errno
from libc.stdint cimport uintptr_t


cdef extern from * nogil:
    """
    #ifndef _GNU_SOURCE
    #define _GNU_SOURCE
    #endif
    #include <sys/mman.h>
    #ifndef MAP_NORESERVE
    #define MAP_NORESERVE 0
    #endif
    #ifndef MAP_ANONYMOUS
    #define MAP_ANONYMOUS MAP_ANON
    #endif
    /* An advice that the system does not know is one that it refuses. */
    #ifdef MADV_HUGEPAGE
    #define VKRT_HUGEPAGE MADV_HUGEPAGE
    #else
    #define VKRT_HUGEPAGE (-1)
    #endif
    #ifdef MADV_REMOVE
    #define VKRT_REMOVE MADV_REMOVE
    #else
    #define VKRT_REMOVE (-1)
    #endif
    #ifdef MADV_FREE
    #define VKRT_FREE MADV_FREE
    #else
    #define VKRT_FREE (-1)
    #endif
    """
    int MAP_PRIVATE, MAP_SHARED, MAP_FIXED, MAP_NORESERVE, MAP_ANONYMOUS
    int PROT_NONE, PROT_READ, PROT_WRITE
    int MADV_DONTNEED, VKRT_HUGEPAGE, VKRT_REMOVE, VKRT_FREE
    void* MAP_FAILED
    void* mmap(void* address, size_t nbytes, int access, int flags, int fd, long offset)
    int munmap(void* address, size_t nbytes)
    int mprotect(void* address, size_t nbytes, int access)
    int madvise(void* address, size_t nbytes, int advice)

PAGE = os.sysconf("SC_PAGESIZE")
live_regions = 0


cdef refused(size_t nbytes, str what):
    return MemoryError(f"no host memory for {nbytes:,} bytes: the system refused to {what} "
                       f"({os.strerror(errno)}); close what is not needed or raise the limits "
                       f"of the process (ulimit -a)")


@cython.no_gc_clear
cdef class Region:
    """Address space for blocks, and which of it is free."""

    def __cinit__(self):
        self.base = self.reserved = NULL
        self.fd = -1

    cdef Py_ssize_t best_hole(self, size_t nbytes, size_t alignment, size_t* start, size_t* hole):
        cdef Py_ssize_t best = -1
        cdef Py_ssize_t i
        cdef size_t first, last, at
        for i in range(len(self.holes)):
            first, last = self.holes[i]
            at = up(<uintptr_t>self.base + first, alignment) - <uintptr_t>self.base
            if at + nbytes <= last and (best < 0 or last - first < hole[0]):
                best, start[0], hole[0] = i, at, last - first
        return best

    cdef int take(self, Py_ssize_t index, size_t start, size_t end) except -1:
        first, last = self.holes[index]
        self.holes[index:index + 1] = [hole for hole in ((first, start), (end, last))
                                       if hole[0] < hole[1]]
        self.blocks += 1
        return 0

    cdef int put(self, size_t start, size_t end, size_t* first, size_t* last) except -1:
        cdef Py_ssize_t i = bisect_left(self.holes, (start, end))
        cdef Py_ssize_t j = i
        cdef size_t low = start
        cdef size_t high = end
        if i > 0 and self.holes[i - 1][1] == start:
            i -= 1
            low = self.holes[i][0]
        if j < len(self.holes) and self.holes[j][0] == end:
            high = self.holes[j][1]
            j += 1
        self.holes[i:j] = [(low, high)]
        self.blocks -= 1
        first[0] = max(up(low, PAGE), down(start, PAGE))
        last[0] = max(first[0], min(down(high, PAGE), up(end, PAGE)))
        return 0

    cdef bint is_full(self, size_t start, size_t end):
        """Whether every page in [start, end) has bytes of a block."""
        cdef Py_ssize_t i = max(bisect_left(self.holes, (start, 0)) - 1, 0)
        cdef size_t first, last
        while i < len(self.holes):
            first, last = self.holes[i]
            if first >= end:
                break
            if max(up(first, PAGE), start) < min(down(last, PAGE), end):
                return False
            i += 1
        return True

    cdef bint open_pages(self, size_t first, size_t last) noexcept nogil:
        return mprotect(self.base + first, last - first, PROT_READ | PROT_WRITE) == 0

    cdef void shut_pages(self, size_t first, size_t last) noexcept nogil:
        mprotect(self.base + first, last - first, PROT_NONE)

    cdef void ask_for_huge(self, size_t first, size_t last) noexcept nogil:
        madvise(self.base + first, last - first, VKRT_HUGEPAGE)

    @property
    def pages(self):
        """Bytes of the pages that have bytes of a block."""
        cdef size_t free = 0
        cdef size_t first, last
        for first, last in self.holes:
            free += max(down(last, PAGE), up(first, PAGE)) - up(first, PAGE)
        return self.nbytes - free

    @property
    def gaps(self):
        """Free bytes that blocks follow."""
        return sum(last - first for first, last in self.holes if last < self.nbytes)

    cdef void unmap(self) noexcept:
        global live_regions
        if self.reserved != NULL:
            munmap(self.reserved, self.reserved_bytes)
            self.base = self.reserved = NULL
            if self.fd >= 0:
                os.close(self.fd)
                self.fd = -1
            live_regions -= 1

    def __dealloc__(self):
        self.unmap()


cdef Region reserve(size_t nbytes, size_t alignment, bint shared, size_t asked):
    """A region of `nbytes` that begins on a multiple of `alignment`.

    The pages around it stay inaccessible, so that it never shares a mapping with its neighbours:
    figures of smaps for it are its own.
    """
    global live_regions
    cdef Region region = Region.__new__(Region)
    cdef size_t whole = nbytes + alignment + 2 * PAGE
    cdef char* address = <char*>mmap(NULL, whole, PROT_NONE,
                                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)
    cdef char* end
    if <void*>address == MAP_FAILED:
        raise refused(asked, f"reserve {whole:,} bytes of address space")
    live_regions += 1
    region.base = <char*>up(<uintptr_t>address + PAGE, alignment)
    region.reserved = region.base - PAGE
    end = region.base + nbytes + PAGE
    region.reserved_bytes = end - region.reserved
    if region.reserved > address:
        munmap(address, region.reserved - address)
    if address + whole > end:
        munmap(end, address + whole - end)
    region.nbytes = nbytes
    region.holes = [(0, nbytes)]
    if shared:
        try:
            region.fd = os.memfd_create("vkrt-host")
            os.ftruncate(region.fd, nbytes)
            if mmap(region.base, nbytes, PROT_NONE, MAP_SHARED | MAP_FIXED, region.fd,
                    0) == MAP_FAILED:
                raise refused(asked, f"map {nbytes:,} bytes of a file in memory")
        except BaseException:
            region.unmap()
            raise
    return region


cdef bint lend_pages(char* start, size_t nbytes) noexcept nogil:
    return madvise(start, nbytes, VKRT_FREE) == 0


cdef void drop_pages(char* start, size_t nbytes, bint shared, size_t huge_bytes) noexcept nogil:
    """Takes the memory out of whole pages.

    MADV_DONTNEED on a part of a huge page leaves all of it allocated until memory is short,
    although no figure of the process shows it. MADV_FREE splits the huge page, after which the
    part does go; it costs a quarter of a millisecond each.
    """
    cdef size_t head, tail
    if shared:  # its pages belong to the file, not to the process
        madvise(start, nbytes, VKRT_REMOVE)
        return
    if huge_bytes:
        head = min(nbytes, up(<uintptr_t>start, huge_bytes) - <uintptr_t>start)
        tail = min(nbytes - head, (<uintptr_t>start + nbytes) % huge_bytes)
        if head:
            madvise(start, head, VKRT_FREE)
        if tail:
            madvise(start + nbytes - tail, tail, VKRT_FREE)
    madvise(start, nbytes, MADV_DONTNEED)
