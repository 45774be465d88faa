# cython: language_level=3
"""Regions of address space, and what the system is asked about their pages."""

# Of the small pages
cdef size_t PAGE
# In this process
cdef long live_regions


cdef inline size_t down(size_t value, size_t unit) noexcept nogil:
    return value // unit * unit


cdef inline size_t up(size_t value, size_t unit) noexcept nogil:
    return down(value + unit - 1, unit)


cdef class Region:
    cdef object __weakref__
    # First byte (a multiple of the huge page's size) and size of the address space for blocks
    cdef char* base
    cdef readonly size_t nbytes
    # All that was reserved: the same with a guard page at either end
    cdef char* reserved
    cdef size_t reserved_bytes
    # The file in memory behind it, or -1
    cdef readonly int fd
    # Free ranges [(start, end)], offsets from `base`: sorted, disjoint, never touching each other
    cdef list holes
    cdef readonly size_t used
    cdef readonly size_t blocks

    # Index of the smallest hole that takes the block and the offset it would have; -1 for none
    cdef Py_ssize_t best_hole(self, size_t nbytes, size_t alignment, size_t* start, size_t* hole)
    cdef int take(self, Py_ssize_t index, size_t start, size_t end) except -1
    # Puts [start, end) back and returns the whole pages [*first, *last) that this set free
    cdef int put(self, size_t start, size_t end, size_t* first, size_t* last) except -1
    cdef bint is_full(self, size_t start, size_t end)
    cdef void unmap(self) noexcept
    # Whole pages, offsets from `base`: accessible (False: refused, see errno), or out of reach
    cdef bint open_pages(self, size_t first, size_t last) noexcept nogil
    cdef void shut_pages(self, size_t first, size_t last) noexcept nogil
    cdef void ask_for_huge(self, size_t first, size_t last) noexcept nogil


# A region for a block of `asked` bytes
cdef Region reserve(size_t nbytes, size_t alignment, bint shared, size_t asked)
# The error to raise after a call that set errno
cdef refused(size_t nbytes, str what)
# Whole pages that the system may take when it needs them; False where it knows no such thing
cdef bint lend_pages(char* start, size_t nbytes) noexcept nogil
# `huge_bytes` of huge pages to split where a part of one goes; 0 for none
cdef void drop_pages(char* start, size_t nbytes, bint shared, size_t huge_bytes) noexcept nogil
