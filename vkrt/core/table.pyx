"""Fills the function tables: the address of each Vulkan function, asked once.

A table of the device's own addresses skips the dispatch of the loader, and what is never linked
cannot keep vkrt from being imported where there is no Vulkan.
"""

from libc.stdio cimport snprintf

from vkrt.core.error cimport VKRT_ERROR_LOADER, VKRT_OK, Error, fail_call
from vkrt.core.live cimport BUFFER

cdef extern from * nogil:
    """
    #define VKRT_NAME(name) #name,
    static const char* const vkrt_instance_names[] = {
        VKRT_INSTANCE_REQUIRED(VKRT_NAME) VKRT_INSTANCE_OPTIONAL(VKRT_NAME) NULL};
    #define VKRT_CREATE_NAME(name) "vkCreate" #name,
    #define VKRT_DESTROY_NAME(name) "vkDestroy" #name,
    static const char* const vkrt_device_names[] = {
        VKRT_CHILDREN(VKRT_CREATE_NAME) VKRT_CHILDREN(VKRT_DESTROY_NAME)
        VKRT_DEVICE_OTHERS(VKRT_NAME) VKRT_DEVICE_OPTIONAL(VKRT_NAME) NULL};
    enum {
        VKRT_INSTANCE_NEEDED = 0 VKRT_INSTANCE_REQUIRED(VKRT_ONE),
        VKRT_DEVICE_NEEDED = 2 * (VKRT_CHILDREN(VKRT_ONE)) VKRT_DEVICE_OTHERS(VKRT_ONE)
    };
    """
    # In the order of the tables, NULL behind them; and how many of them may not be missing
    const char* const* instance_names "vkrt_instance_names"
    const char* const* device_names "vkrt_device_names"
    int INSTANCE_NEEDED "VKRT_INSTANCE_NEEDED"
    int DEVICE_NEEDED "VKRT_DEVICE_NEEDED"


cdef int fill_instance_table(InstanceTable* table, PFN_vkGetInstanceProcAddr lookup,
                             VkInstance instance, Error* error) noexcept nogil:
    cdef void** entries = <void**>&table.vkGetDeviceProcAddr
    cdef int i = 0
    table.vkGetInstanceProcAddr = lookup
    while instance_names[i] != NULL:
        entries[i] = <void*>lookup(instance, instance_names[i])
        if entries[i] == NULL and i < INSTANCE_NEEDED:
            return fail_call(error, VKRT_ERROR_LOADER, 0, instance_names[i],
                             b"the Vulkan library has no %s: vkrt needs Vulkan 1.1",
                             instance_names[i])
        i += 1
    return VKRT_OK


cdef int fill_device_table(DeviceTable* table, PFN_vkGetDeviceProcAddr lookup, VkDevice device,
                           Error* error) noexcept nogil:
    cdef void** entries = <void**>table
    cdef char[64] extended
    cdef int i = 0
    while device_names[i] != NULL:
        entries[i] = <void*>lookup(device, device_names[i])
        if entries[i] == NULL:
            if i < DEVICE_NEEDED:
                return fail_call(error, VKRT_ERROR_LOADER, 0, device_names[i],
                                 b"the Vulkan driver has no %s", device_names[i])
            # Before Vulkan 1.2 it may know them by the extension's names.
            snprintf(extended, sizeof(extended), b"%sKHR", device_names[i])
            entries[i] = <void*>lookup(device, extended)
        i += 1
    return VKRT_OK


cdef const char* create_name(Kind kind) noexcept nogil:
    return device_names[<int>kind - <int>BUFFER]
