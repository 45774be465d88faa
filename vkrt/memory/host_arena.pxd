# cython: language_level=3
"""Host memory that vkrt allocates itself: regions of address space with blocks packed in them."""

cimport cython


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


@cython.final
cdef class HostArena:
    cdef readonly str policy
    cdef readonly bint shared
    cdef readonly bint closed
    cdef readonly size_t huge_bytes
    cdef bint advise
    # Whether the system may put huge pages into the memory
    cdef bint has_huge
    cdef list regions
    # Blocks whose contents nobody needs: address -> bytes
    cdef dict idle_blocks

    cpdef HostBlock allocate(self, size_t nbytes, size_t alignment=*)
    cdef HostBlock place(self, Region region, Py_ssize_t index, size_t start, size_t nbytes)
    cdef int advise_full(self, Region region, size_t start, size_t end) except -1
    cdef void drop(self, char* start, size_t nbytes) noexcept nogil
    cdef int release(self, Region region, size_t start, size_t nbytes) except -1


@cython.final
cdef class HostBlock:
    cdef HostArena arena
    cdef Region region
    # First byte, or NULL once the memory is given back
    cdef char* data
    cdef readonly size_t nbytes
    # Of `data` in the region, and so in the region's file
    cdef readonly size_t offset
    cdef readonly bint closed
    cdef int exports

    cdef void destroy(self) noexcept
