# cython: language_level=3
"""What a physical device offers: properties, memory, features."""

from libc.stdint cimport uint32_t

from vkrt.vk.api cimport (
    VkPhysicalDevice, VkPhysicalDevice16BitStorageFeatures, VkPhysicalDevice8BitStorageFeatures,
    VkPhysicalDeviceFeatures2, VkPhysicalDeviceMaintenance4Features,
    VkPhysicalDeviceShaderFloat16Int8Features, VkPhysicalDeviceShaderIntegerDotProductFeatures,
    VkPhysicalDeviceTimelineSemaphoreFeatures,
)
from vkrt.vk.loader cimport Instance


# The feature structs vkrt looks into, chained behind `core` as far as the device knows them.
cdef struct FeatureChain:
    VkPhysicalDeviceFeatures2 core
    VkPhysicalDevice16BitStorageFeatures storage16
    VkPhysicalDevice8BitStorageFeatures storage8
    VkPhysicalDeviceShaderFloat16Int8Features float16_int8
    VkPhysicalDeviceTimelineSemaphoreFeatures timeline
    VkPhysicalDeviceMaintenance4Features maintenance4
    VkPhysicalDeviceShaderIntegerDotProductFeatures dot_product


# Clears and links the chain for a device of this version with these extensions (set of str).
cdef int link_features(FeatureChain* chain, uint32_t version, extensions) except -1
# Switches on the features named and clears all others.
cdef int set_features(FeatureChain* chain, names) except -1
# The extensions to enable on a device, out of those it has, as a list of bytes.
cdef list wanted_extensions(uint32_t version, extensions)
# The physical devices that vkrt can use: (address, DeviceInfo) for each.
cdef list usable_devices(Instance instance)
cdef object describe(Instance instance, VkPhysicalDevice physical, int index)
# Refuses a device of a Vulkan before the least that vkrt works with.
cdef int check_version(Instance instance, VkPhysicalDevice physical) except -1
# The first queue family with compute, -1 when there is none.
cdef int compute_family(Instance instance, VkPhysicalDevice physical)
# Refuses a queue family that is not there or does no compute.
cdef int check_family(Instance instance, VkPhysicalDevice physical, uint32_t family) except -1
# Valid bits of the timestamps of a queue family, 0 where it has none.
cdef uint32_t timestamp_bits_of(Instance instance, VkPhysicalDevice physical, int family)
# A queue family that only copies, beside which the compute family goes on; else `compute`.
cdef int upload_family(Instance instance, VkPhysicalDevice physical, int compute)
# Version that both the instance and the device speak
cdef uint32_t common_version(Instance instance, VkPhysicalDevice physical) except 0
