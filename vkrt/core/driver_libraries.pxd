"""Libraries of drivers stay loaded until the process ends.

The Vulkan loader unloads them with the last instance and loads them again for the next one. Drivers
leave behind threads, exit handlers and thread-local memory, of which a process has little: after
two dozen instances NVIDIA's library can no longer be loaded.
"""

cdef extern nogil:
    # Keeps those that are loaded; after an instance was made these are all that the loader has
    # found.
    void keep_driver_libraries "vkrt_keep_driver_libraries"()
