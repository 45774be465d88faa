"""Memory that goes back to the system before it is freed, or though it was."""

from libc.stdint cimport uint64_t

cdef extern nogil:
    # Drops the whole pages in a range of shared memory. Where device memory is a file in memory
    # (llvmpipe since Mesa 24), freeing it takes it out of the process and leaves its pages in that
    # file until the instance is gone. Private memory refuses the advice, which is harmless.
    void return_pages "vkrt_return_pages"(void* address, uint64_t size)
    # Gives free pages of the C heap back, where the C library can (glibc): CPU drivers keep small
    # allocations there. Returns whether pages were returned.
    bint trim_heap "vkrt_trim_heap"()
