# cython: language_level=3
"""The devices that there are, and which of them a host means."""

from vkrt.core.error cimport Error
from vkrt.core.instance cimport Instance
from vkrt.core.physical cimport Physical
from vkrt.core.vulkan cimport VkPhysicalDevice


# "cpu", "integrated", "discrete", "virtual" or "other"
cdef extern const char* device_type_name "vkrt_device_type_name"(
    const Physical* physical) noexcept nogil
# The devices in the driver's order, see `usable_devices`. Fails where there is none.
cdef extern int list_devices "vkrt_list_devices"(
    Instance* instance, VkPhysicalDevice* found, int* count, Error* error) noexcept nogil
# Why there is none, and what to do, for messages
cdef extern const char* say_no_device "vkrt_say_no_device"(
    const Instance* instance, char* text, size_t size) noexcept nogil
# What a device offers; the caller frees it (`free_physical`), also where it failed.
#   name: a type, a part of a device's name, its number as "#1", or NULL for the best one
cdef extern int choose_device "vkrt_choose_device"(
    Instance* instance, const char* name, Physical* physical, Error* error) noexcept nogil
