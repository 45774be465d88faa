"""The Vulkan library: its entry point, its version, why it finds no driver. Libraries of drivers
stay loaded."""

from libc.stdint cimport uint32_t

from vkrt.core.error cimport Error
from vkrt.core.vulkan cimport PFN_vkGetInstanceProcAddr

cdef extern nogil:
    # The entry point of the library, which the first call opens and nothing closes again.
    int open_library "vkrt_open_library"(PFN_vkGetInstanceProcAddr* entry, Error* error)
    # The version of instances that the library makes (VK_API_VERSION_..), at least 1.1.
    int library_version "vkrt_library_version"(PFN_vkGetInstanceProcAddr entry, uint32_t* version,
                                               Error* error)
    # Why the library finds no driver, and what to do: the environment may name other drivers than
    # there are. `text` has room for so many bytes.
    const char* say_no_driver "vkrt_say_no_driver"(char* text, size_t size)

    # Keeps the libraries of drivers that are loaded to the end of the process; after an instance
    # was made these are all that the loader has found. The loader unloads them with the last
    # instance and loads them again for the next one, and they leave behind threads, exit handlers
    # and thread-local memory, of which a process has little: after two dozen instances NVIDIA's
    # can no longer be loaded.
    void keep_driver_libraries "vkrt_keep_driver_libraries"()
