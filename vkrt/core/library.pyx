"""The Vulkan library, opened with dlopen on first use, so that importing vkrt needs no Vulkan.

Environment:
    VKRT_VULKAN_LIBRARY: path or name of the library, instead of the usual names.
"""

from libc.stdio cimport snprintf
from libc.stdlib cimport free, getenv
from libc.string cimport memcpy, strchr, strdup, strlen
from posix.dlfcn cimport RTLD_LAZY, RTLD_LOCAL, RTLD_NOW, dlclose, dlerror, dlopen, dlsym
from posix.unistd cimport F_OK, access

from vkrt.core.error cimport VKRT_ERROR_LOADER, VKRT_OK, fail_call
from vkrt.core.results cimport check_result
from vkrt.core.vulkan cimport PFN_vkEnumerateInstanceVersion

cdef extern from * nogil:
    """
    #define VKRT_INSTALL "install the Vulkan loader and a driver " \\
                         "(Debian and Ubuntu: libvulkan1 and mesa-vulkan-drivers)"
    """
    const char* INSTALL "VKRT_INSTALL"

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

cdef PFN_vkGetInstanceProcAddr library_entry


cdef const char* say_no_driver(char* text, size_t size) noexcept nogil:
    # The first is the newer name, and goes before the second where the library knows it.
    cdef const char* variable = b"VK_DRIVER_FILES"
    cdef const char* named = getenv(variable)
    cdef const char* missing
    cdef size_t length
    if named == NULL or named[0] == 0:
        variable = b"VK_ICD_FILENAMES"
        named = getenv(variable)
    if named == NULL or named[0] == 0:
        snprintf(text, size, b"please %s", INSTALL)
        return text
    missing = first_missing(named, &length)
    if missing != NULL:
        snprintf(text, size, b"%s=%s says which drivers are used, and %.*s is not there; correct "
                 b"it, or unset it and %s", variable, named, <int>length, missing, INSTALL)
    else:
        snprintf(text, size, b"%s=%s says which drivers are used, and none of these works here; "
                 b"correct it, or unset it and %s", variable, named, INSTALL)
    return text


cdef const char* first_missing(const char* paths, size_t* length) noexcept nogil:
    """The first of the paths, divided by colons, at which there is no file; NULL: there is none."""
    cdef char[4096] path
    cdef const char* end
    while paths[0] != 0:
        end = strchr(paths, c':')
        length[0] = end - paths if end != NULL else strlen(paths)
        if length[0] < sizeof(path):
            memcpy(path, paths, length[0])
            path[length[0]] = 0
            if access(path, F_OK) != 0:
                return paths
        if end == NULL:
            break
        paths = end + 1
    return NULL


cdef int open_library(PFN_vkGetInstanceProcAddr* entry, Error* error) noexcept nogil:
    global library_entry
    cdef const char* chosen = getenv(b"VKRT_VULKAN_LIBRARY")
    cdef void* library
    cdef const char* advice = b"check VKRT_VULKAN_LIBRARY"
    if library_entry == NULL:
        if chosen != NULL and chosen[0] != 0:
            library = dlopen(chosen, RTLD_NOW | RTLD_LOCAL)
        else:
            advice = INSTALL
            chosen = b"libvulkan"
            library = dlopen(b"libvulkan.so.1", RTLD_NOW | RTLD_LOCAL)
            if library == NULL:
                library = dlopen(b"libvulkan.so", RTLD_NOW | RTLD_LOCAL)
        if library == NULL:
            return fail_call(error, VKRT_ERROR_LOADER, 0, b"dlopen",
                             b"no Vulkan library: %s. Please %s.", dlerror(), advice)
        # Never closed again: drivers leave threads and exit handlers behind.
        library_entry = <PFN_vkGetInstanceProcAddr>dlsym(library, b"vkGetInstanceProcAddr")
        if library_entry == NULL:
            return fail_call(error, VKRT_ERROR_LOADER, 0, b"dlsym", b"%s is not a Vulkan library: "
                             b"it has no vkGetInstanceProcAddr", chosen)
    entry[0] = library_entry
    return VKRT_OK


cdef int library_version(PFN_vkGetInstanceProcAddr entry, uint32_t* version,
                         Error* error) noexcept nogil:
    cdef PFN_vkEnumerateInstanceVersion function = <PFN_vkEnumerateInstanceVersion>entry(
        NULL, b"vkEnumerateInstanceVersion")
    if function == NULL:
        return fail_call(error, VKRT_ERROR_LOADER, 0, b"vkEnumerateInstanceVersion",
                         b"the Vulkan library is of version 1.0; vkrt needs 1.1")
    return check_result(function(version), b"vkEnumerateInstanceVersion", error)


# Libraries of drivers

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
