# cython: language_level=3

from libc.stdint cimport uintptr_t
from posix.dlfcn cimport dlsym

cdef extern from * nogil:
    """
    #ifndef _GNU_SOURCE
    #define _GNU_SOURCE
    #endif
    #include <dlfcn.h>
    #include <sys/mman.h>
    #include <unistd.h>
    #ifdef MADV_REMOVE
    #define VKRT_MADV_REMOVE MADV_REMOVE
    #else
    #define VKRT_MADV_REMOVE (-1)  /* not Linux: an advice that is refused */
    #endif
    #ifndef RTLD_DEFAULT
    #define RTLD_DEFAULT ((void*)0)
    #endif
    """
    int VKRT_MADV_REMOVE
    void* RTLD_DEFAULT
    int madvise(void* address, size_t size, int advice)
    long sysconf(int name)
    int _SC_PAGESIZE

ctypedef int (*TrimHeap)(size_t) noexcept nogil


cdef void return_pages(void* address, uint64_t size) noexcept nogil:
    # A power of two
    cdef uintptr_t page = sysconf(_SC_PAGESIZE)
    cdef uintptr_t first = (<uintptr_t>address + page - 1) & ~(page - 1)
    cdef uintptr_t last = (<uintptr_t>address + <uintptr_t>size) & ~(page - 1)
    if last > first:
        madvise(<void*>first, last - first, VKRT_MADV_REMOVE)


cdef bint trim_heap() noexcept nogil:
    cdef TrimHeap malloc_trim = <TrimHeap>dlsym(RTLD_DEFAULT, b"malloc_trim")
    return malloc_trim != NULL and malloc_trim(0) != 0
