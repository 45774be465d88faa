from libc.stdint cimport uint64_t

cdef enum:
    SCRATCHES = 16

cdef struct Scratch:
    uint64_t busy
    char* data
    size_t nbytes

# Scratch memory of any number of threads, aligned to pages. All zeros is an empty one.
cdef struct ScratchPool:
    Scratch scratches[SCRATCHES]
    uint64_t held  # bytes
    uint64_t peak

cdef extern nogil:
    char* acquire_scratch "vkrt_acquire_scratch"(ScratchPool* pool, size_t nbytes, int* slot)
    void release_scratch "vkrt_release_scratch"(ScratchPool* pool, char* data, size_t nbytes,
                                                int slot)
    void free_idle_scratch "vkrt_free_idle_scratch"(ScratchPool* pool)
