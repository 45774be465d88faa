"""The devices that there are, and which of them a host means."""

from vkrt.core.error cimport Error
from vkrt.core.instance cimport Instance
from vkrt.core.physical cimport Physical
from vkrt.core.vulkan cimport VkPhysicalDevice

cdef extern nogil:
    # "cpu", "integrated", "discrete", "virtual" or "other"
    const char* device_type_name "vkrt_device_type_name"(const Physical* physical)
    # The devices in the driver's order, see `usable_devices`. Fails where there is none.
    int list_devices "vkrt_list_devices"(Instance* instance, VkPhysicalDevice* found, int* count,
                                         Error* error)
    # Why there is none, and what to do, for messages
    const char* say_no_device "vkrt_say_no_device"(const Instance* instance, char* text,
                                                   size_t size)
    # What a device offers; the caller frees it (`free_physical`), also where it failed.
    #   name: a type, a part of a device's name, its number as "#1", or NULL for the best one
    int choose_device "vkrt_choose_device"(Instance* instance, const char* name, Physical* physical,
                                           Error* error)
