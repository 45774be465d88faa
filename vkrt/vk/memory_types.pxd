from vkrt.core.vulkan cimport VkPhysicalDeviceMemoryProperties

# What Vulkan would say of a device with the `heaps` and `memory_types` of a `DeviceInfo`.
cdef int fill_properties(VkPhysicalDeviceMemoryProperties* memory, heaps, types) except -1
