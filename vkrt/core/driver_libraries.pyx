from libc.stdlib cimport free
from libc.string cimport strdup
from posix.dlfcn cimport RTLD_LAZY, dlclose, dlopen, dlsym

cdef extern from "dlfcn.h" nogil:
    int RTLD_NOLOAD
    int RTLD_NODELETE

cdef extern from "link.h" nogil:
    struct dl_phdr_info:
        const char* dlpi_name
    int dl_iterate_phdr(int (*callback)(dl_phdr_info* info, size_t size, void* data) noexcept nogil,
                        void* data)

cdef enum:
    # Of a process, more than any has
    MAX_LIBRARIES = 1024


cdef struct Names:
    char* items[MAX_LIBRARIES]
    int size


cdef int add_name(dl_phdr_info* info, size_t size, void* data) noexcept nogil:
    cdef Names* names = <Names*>data
    cdef bint is_library = info.dlpi_name != NULL and info.dlpi_name[0] != 0
    if is_library and names.size < MAX_LIBRARIES:
        names.items[names.size] = strdup(info.dlpi_name)
        names.size += names.items[names.size] != NULL
    return 0


cdef void keep_driver_libraries() noexcept nogil:
    cdef Names names
    cdef int i
    names.size = 0
    # Names first: who iterates holds a lock for which dlopen may wait.
    dl_iterate_phdr(add_name, &names)
    for i in range(names.size):
        keep_if_driver(names.items[i])
        free(names.items[i])


cdef void keep_if_driver(const char* name) noexcept nogil:
    cdef void* library = dlopen(name, RTLD_LAZY | RTLD_NOLOAD)
    if library == NULL:
        return
    # What the loader asks of every driver, and of nothing else
    if dlsym(library, b"vk_icdGetInstanceProcAddr") != NULL:
        dlopen(name, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE)
    dlclose(library)
