# cython: language_level=3
"""Scratch memory: what bytes pass through between the file and their packing.

Every thread at work has a piece of it, kept for its next piece of work until it is freed. Each
piece is a mapping of its own, so that its pages go back to the system at once; one that holds
whole huge pages asks for them.
"""

cimport cython
from libc.string cimport memset

from vkrt.memory.system cimport (
    atomic_add, atomic_change, atomic_load, atomic_store, map_memory, unmap_memory,
)


@cython.no_gc_clear
cdef class ScratchPool:
    """Scratch memory of any number of threads, aligned to pages."""

    def __cinit__(self):
        memset(self.scratches, 0, sizeof(self.scratches))

    cdef char* acquire(self, size_t nbytes, int* slot) noexcept nogil:
        """Memory of at least `nbytes`, for the calling thread alone; NULL: there is none.

        `slot` has to be given back with it.
        """
        cdef int i
        cdef char* data = NULL
        cdef Scratch* scratch
        cdef uint64_t held, peak
        slot[0] = -1
        for i in range(SCRATCHES):
            scratch = &self.scratches[i]
            if atomic_change(&scratch.busy, 0, 1):
                if scratch.nbytes >= nbytes:
                    slot[0] = i
                    return scratch.data
                self.drop(scratch)
                slot[0] = i
                break
        data = map_memory(nbytes)
        if data == NULL:
            nbytes = 0
        if slot[0] >= 0:
            scratch = &self.scratches[slot[0]]
            scratch.data, scratch.nbytes = data, nbytes
            if data == NULL:
                atomic_store(&scratch.busy, 0)
        held = atomic_add(&self.held, nbytes) + nbytes
        peak = atomic_load(&self.peak)
        while held > peak and not atomic_change(&self.peak, peak, held):
            peak = atomic_load(&self.peak)
        return data

    cdef void release(self, char* data, size_t nbytes, int slot) noexcept nogil:
        """Gives memory back, with what was asked of `acquire`; it is kept for the next piece."""
        if slot >= 0:
            atomic_store(&self.scratches[slot].busy, 0)
        else:
            unmap_memory(data, nbytes)
            atomic_add(&self.held, -<uint64_t>nbytes)

    cdef void drop(self, Scratch* scratch) noexcept nogil:
        unmap_memory(scratch.data, scratch.nbytes)
        atomic_add(&self.held, -<uint64_t>scratch.nbytes)
        scratch.data, scratch.nbytes = NULL, 0

    cdef void free_idle(self) noexcept nogil:
        """Frees the memory that no thread has."""
        cdef int i
        cdef Scratch* scratch
        for i in range(SCRATCHES):
            scratch = &self.scratches[i]
            if atomic_change(&scratch.busy, 0, 1):
                self.drop(scratch)
                atomic_store(&scratch.busy, 0)

    def __dealloc__(self):
        self.free_idle()
