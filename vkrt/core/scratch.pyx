"""Scratch memory: what bytes pass through between the file and their packing.

Every thread at work has a piece of it, kept for its next piece of work until it is freed. Each
piece is a mapping of its own, so that its pages go back to the system at once; one that holds
whole huge pages asks for them.
"""

from vkrt.core.atomic cimport atomic_add64, atomic_change64, atomic_raise, atomic_write64
from vkrt.core.system cimport map_memory, unmap_memory


cdef char* acquire_scratch(ScratchPool* pool, size_t nbytes, int* slot) noexcept nogil:
    """Memory of at least `nbytes`, for the calling thread alone; NULL: there is none.

    `slot` has to be given back with it.
    """
    cdef int i
    cdef char* data = NULL
    cdef Scratch* scratch
    slot[0] = -1
    for i in range(SCRATCHES):
        scratch = &pool.scratches[i]
        if atomic_change64(&scratch.busy, 0, 1):
            if scratch.nbytes >= nbytes:
                slot[0] = i
                return scratch.data
            drop(pool, scratch)
            slot[0] = i
            break
    data = map_memory(nbytes)
    if data == NULL:
        nbytes = 0
    if slot[0] >= 0:
        scratch = &pool.scratches[slot[0]]
        scratch.data, scratch.nbytes = data, nbytes
        if data == NULL:
            atomic_write64(&scratch.busy, 0)
    atomic_raise(&pool.peak, atomic_add64(&pool.held, nbytes))
    return data


cdef void release_scratch(ScratchPool* pool, char* data, size_t nbytes,
                          int slot) noexcept nogil:
    """Gives memory back, with what `acquire_scratch` was asked for; the next piece may use it."""
    if slot >= 0:
        atomic_write64(&pool.scratches[slot].busy, 0)
    else:
        unmap_memory(data, nbytes)
        atomic_add64(&pool.held, -<uint64_t>nbytes)


cdef void drop(ScratchPool* pool, Scratch* scratch) noexcept nogil:
    unmap_memory(scratch.data, scratch.nbytes)
    atomic_add64(&pool.held, -<uint64_t>scratch.nbytes)
    scratch.data, scratch.nbytes = NULL, 0


cdef void free_idle_scratch(ScratchPool* pool) noexcept nogil:
    """Frees the memory that no thread has."""
    cdef int i
    cdef Scratch* scratch
    for i in range(SCRATCHES):
        scratch = &pool.scratches[i]
        if atomic_change64(&scratch.busy, 0, 1):
            drop(pool, scratch)
            atomic_write64(&scratch.busy, 0)
