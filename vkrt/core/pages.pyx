from libc.stdint cimport uintptr_t
from posix.dlfcn cimport dlsym

from vkrt.core.system cimport page_size, remove_pages

cdef extern from * nogil:
    """
    #ifndef _GNU_SOURCE
    #define _GNU_SOURCE
    #endif
    #include <dlfcn.h>
    #ifndef RTLD_DEFAULT
    #define RTLD_DEFAULT ((void*)0)
    #endif
    """
    void* RTLD_DEFAULT

ctypedef int (*TrimHeap)(size_t) noexcept nogil


cdef void return_pages(void* address, uint64_t size) noexcept nogil:
    # A power of two
    cdef uintptr_t page = page_size()
    cdef uintptr_t first = (<uintptr_t>address + page - 1) & ~(page - 1)
    cdef uintptr_t last = (<uintptr_t>address + <uintptr_t>size) & ~(page - 1)
    if last > first:
        remove_pages(<void*>first, last - first)


cdef bint trim_heap() noexcept nogil:
    cdef TrimHeap malloc_trim = <TrimHeap>dlsym(RTLD_DEFAULT, b"malloc_trim")
    return malloc_trim != NULL and malloc_trim(0) != 0
