"""Arrays to which items are added one by one."""

from libc.stdlib cimport realloc


cdef inline void* grown(void* items, size_t count, size_t size) noexcept nogil:
    """Room for one item more than so many: there is room for powers of two. NULL: the host is out
    of memory, and the items stay as they are."""
    return items if count & (count - 1) else realloc(items, max(2 * count, <size_t>1) * size)
