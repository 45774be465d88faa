"""The Vulkan library, opened with dlopen on first use, so that importing vkrt needs no Vulkan.

Environment:
    VKRT_VULKAN_LIBRARY: path or name of the library, instead of the usual names.
"""

from libc.stdio cimport snprintf
from libc.stdlib cimport getenv
from libc.string cimport memcpy, strchr, strlen
from posix.dlfcn cimport RTLD_LOCAL, RTLD_NOW, dlerror, dlopen, dlsym
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
