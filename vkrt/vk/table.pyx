# cython: language_level=3
"""Fills the function tables: the address of each Vulkan function, asked once.

A table of the device's own addresses skips the dispatch of the loader, and what is never linked
cannot keep vkrt from being imported where there is no Vulkan.
"""

from vkrt.errors import LoaderError

cdef extern from * nogil:
    """
    #define VKRT_NAME(name) #name,
    #define VKRT_ONE(name) + 1
    static const char* const vkrt_instance_names[] = {
        VKRT_INSTANCE_REQUIRED(VKRT_NAME) VKRT_INSTANCE_OPTIONAL(VKRT_NAME) NULL};
    static const char* const vkrt_device_names[] = {
        VKRT_DEVICE_REQUIRED(VKRT_NAME) VKRT_DEVICE_OPTIONAL(VKRT_NAME) NULL};
    enum {
        VKRT_INSTANCE_NEEDED = 0 VKRT_INSTANCE_REQUIRED(VKRT_ONE),
        VKRT_DEVICE_NEEDED = 0 VKRT_DEVICE_REQUIRED(VKRT_ONE)
    };
    """
    # In the order of the tables, NULL behind them; and how many of them may not be missing
    const char* const* instance_names "vkrt_instance_names"
    const char* const* device_names "vkrt_device_names"
    int INSTANCE_NEEDED "VKRT_INSTANCE_NEEDED"
    int DEVICE_NEEDED "VKRT_DEVICE_NEEDED"


cdef int fill_instance_table(InstanceTable* table, PFN_vkGetInstanceProcAddr lookup,
                             VkInstance instance) except -1:
    cdef void** entries = <void**>&table.vkGetDeviceProcAddr
    cdef int i = 0
    table.vkGetInstanceProcAddr = lookup
    while instance_names[i] != NULL:
        entries[i] = <void*>lookup(instance, instance_names[i])
        if entries[i] == NULL and i < INSTANCE_NEEDED:
            name = instance_names[i].decode()
            raise LoaderError(f"the Vulkan library has no {name}: vkrt needs Vulkan 1.1", call=name)
        i += 1
    return 0


cdef int fill_device_table(DeviceTable* table, PFN_vkGetDeviceProcAddr lookup,
                           VkDevice device) except -1:
    cdef void** entries = <void**>table
    cdef int i = 0
    while device_names[i] != NULL:
        entries[i] = <void*>lookup(device, device_names[i])
        if entries[i] == NULL:
            name = device_names[i].decode()
            if i < DEVICE_NEEDED:
                raise LoaderError(f"the Vulkan driver has no {name}", call=name)
            # Before Vulkan 1.2 it may know them by the extension's names.
            entries[i] = <void*>lookup(device, f"{name}KHR".encode())
        i += 1
    return 0
