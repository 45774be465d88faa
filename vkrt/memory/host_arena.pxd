# cython: language_level=3
"""Host memory that vkrt allocates itself: blocks packed in regions of address space."""

cimport cython

from vkrt.memory.host_region cimport Region


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
