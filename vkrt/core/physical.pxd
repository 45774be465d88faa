"""What a physical device offers: properties, memory, queues, features."""

from libc.stdint cimport uint32_t, uint64_t

from vkrt.core.error cimport Error
from vkrt.core.instance cimport Instance
from vkrt.core.vulkan cimport (
    VK_API_VERSION_1_1,
    VkExtensionProperties, VkPhysicalDevice, VkPhysicalDeviceDriverProperties,
    VkPhysicalDeviceExternalMemoryHostPropertiesEXT, VkPhysicalDeviceFloatControlsProperties,
    VkPhysicalDeviceMaintenance3Properties, VkPhysicalDeviceMemoryProperties,
    VkPhysicalDeviceProperties2, VkPhysicalDeviceShaderIntegerDotProductProperties,
    VkPhysicalDeviceSubgroupProperties, VkQueueFamilyProperties,
)

cdef enum:
    # The least that vkrt works with
    LEAST_VERSION = VK_API_VERSION_1_1
    MAX_DEVICES = 64
    MAX_FAMILIES = 32

# The properties are zero where the device does not tell them.
cdef struct Physical:
    VkPhysicalDevice handle
    # Version that both the instance and the device speak
    uint32_t version
    VkPhysicalDeviceProperties2 properties
    VkPhysicalDeviceSubgroupProperties subgroup
    VkPhysicalDeviceMaintenance3Properties maintenance
    VkPhysicalDeviceDriverProperties driver
    VkPhysicalDeviceExternalMemoryHostPropertiesEXT imports
    VkPhysicalDeviceShaderIntegerDotProductProperties dot_product
    VkPhysicalDeviceFloatControlsProperties float_controls
    VkPhysicalDeviceMemoryProperties memory
    VkExtensionProperties* extensions
    uint32_t extension_count
    VkQueueFamilyProperties[MAX_FAMILIES] families
    uint32_t family_count
    # A set, see `vkrt.core.features`
    uint64_t features

cdef extern nogil:
    # Reads all of it; balance with `free_physical`, also where it failed.
    int read_physical "vkrt_read_physical"(const Instance* instance, VkPhysicalDevice handle,
                                           Physical* physical, Error* error)
    void free_physical "vkrt_free_physical"(Physical* physical)
    # The physical devices that vkrt can use, at most MAX_DEVICES
    int usable_devices "vkrt_usable_devices"(const Instance* instance, VkPhysicalDevice* found,
                                             int* number, Error* error)
    bint has_extension "vkrt_has_extension"(const Physical* physical, const char* name)
    # The same, as `vkrt.core.features` asks for it (HasExtension); the data is a `Physical`.
    bint offers "vkrt_offers"(const void* physical, const char* name)
    # Refuses a device of a Vulkan before the least that vkrt works with.
    int check_version "vkrt_check_version"(const Physical* physical, Error* error)
    # Refuses a queue family that is not there or does no compute.
    int check_family "vkrt_check_family"(const Physical* physical, uint32_t family, Error* error)
    # The first queue family with compute, -1 when there is none.
    int compute_family "vkrt_compute_family"(const Physical* physical)
    # A queue family that only copies, beside which the compute family goes on; else `compute`.
    int upload_family "vkrt_upload_family"(const Physical* physical, int compute)
    # Valid bits of the timestamps of a queue family, 0 where it has none.
    uint32_t timestamp_bits "vkrt_timestamp_bits"(const Physical* physical, int family)
