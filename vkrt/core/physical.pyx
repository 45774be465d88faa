from libc.stdlib cimport calloc, free
from libc.string cimport memset, strcmp

from vkrt.core.error cimport (
    VKRT_ERROR_INPUT, VKRT_ERROR_MEMORY, VKRT_ERROR_UNSUPPORTED, VKRT_OK, fail,
)
from vkrt.core.features cimport FeatureChain, features_of, link_features
from vkrt.core.results cimport check_result
from vkrt.core.vulkan cimport *


cdef bint has_extension(const Physical* physical, const char* name) noexcept nogil:
    cdef uint32_t i
    for i in range(physical.extension_count):
        if strcmp(physical.extensions[i].extensionName, name) == 0:
            return True
    return False


cdef bint offers(const void* physical, const char* name) noexcept nogil:
    return has_extension(<const Physical*>physical, name)


cdef int read_extensions(const Instance* instance, Physical* physical, Error* error) noexcept nogil:
    cdef const char* call = b"vkEnumerateDeviceExtensionProperties"
    cdef uint32_t number = 0
    if check_result(instance.vk.vkEnumerateDeviceExtensionProperties(
            physical.handle, NULL, &number, NULL), call, error):
        return error.status
    physical.extensions = <VkExtensionProperties*>calloc(
        number + 1, sizeof(VkExtensionProperties))
    if physical.extensions == NULL:
        return fail(error, VKRT_ERROR_MEMORY, b"the names of extensions: the host is out of memory")
    if check_result(instance.vk.vkEnumerateDeviceExtensionProperties(
            physical.handle, NULL, &number, physical.extensions), call, error):
        return error.status
    physical.extension_count = number
    return VKRT_OK


cdef void append(VkBaseOutStructure** last, void* properties, VkStructureType type,
                 bint known) noexcept nogil:
    """Puts a struct of properties at the end of a chain, if the device knows it."""
    cdef VkBaseOutStructure* added = <VkBaseOutStructure*>properties
    added.sType = type
    if known:
        last[0].pNext = added
        last[0] = added


cdef void read_properties(const Instance* instance, Physical* physical) noexcept nogil:
    cdef VkBaseOutStructure* last = <VkBaseOutStructure*>&physical.properties
    cdef bint has_1_2 = physical.version >= VK_API_VERSION_1_2
    cdef bint has_1_3 = physical.version >= VK_API_VERSION_1_3
    last.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2
    append(&last, &physical.subgroup, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES, True)
    append(&last, &physical.maintenance,
           VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES, True)
    append(&last, &physical.driver, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES,
           has_1_2 or has_extension(physical, b"VK_KHR_driver_properties"))
    append(&last, &physical.imports,
           VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_MEMORY_HOST_PROPERTIES_EXT,
           has_extension(physical, b"VK_EXT_external_memory_host"))
    append(&last, &physical.dot_product,
           VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_PROPERTIES,
           has_1_3 or has_extension(physical, b"VK_KHR_shader_integer_dot_product"))
    append(&last, &physical.float_controls,
           VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FLOAT_CONTROLS_PROPERTIES,
           has_1_2 or has_extension(physical, b"VK_KHR_shader_float_controls"))
    instance.vk.vkGetPhysicalDeviceProperties2(physical.handle, &physical.properties)


cdef int read_physical(const Instance* instance, VkPhysicalDevice handle, Physical* physical,
                       Error* error) noexcept nogil:
    cdef FeatureChain chain
    memset(physical, 0, sizeof(physical[0]))
    physical.handle = handle
    # The short form: a device of Vulkan 1.0 has no other.
    instance.vk.vkGetPhysicalDeviceProperties(handle, &physical.properties.properties)
    physical.version = min(instance.api_version, physical.properties.properties.apiVersion)
    physical.family_count = MAX_FAMILIES
    instance.vk.vkGetPhysicalDeviceQueueFamilyProperties(handle, &physical.family_count,
                                                         physical.families)
    instance.vk.vkGetPhysicalDeviceMemoryProperties(handle, &physical.memory)
    if check_version(physical, error) or read_extensions(instance, physical, error):
        return error.status
    read_properties(instance, physical)
    link_features(&chain, physical.version, offers, physical)
    instance.vk.vkGetPhysicalDeviceFeatures2(handle, &chain.core)
    physical.features = features_of(&chain, offers, physical)
    return VKRT_OK


cdef void free_physical(Physical* physical) noexcept nogil:
    free(physical.extensions)
    physical.extensions = NULL
    physical.extension_count = 0


cdef int usable_devices(const Instance* instance, VkPhysicalDevice* found, int* number,
                        Error* error) noexcept nogil:
    cdef VkPhysicalDevice[MAX_DEVICES] handles
    cdef VkPhysicalDeviceProperties properties
    cdef Physical physical
    cdef uint32_t count = MAX_DEVICES
    cdef uint32_t i
    number[0] = 0
    if check_result(instance.vk.vkEnumeratePhysicalDevices(instance.handle, &count, handles),
                    b"vkEnumeratePhysicalDevices", error):
        return error.status
    for i in range(count):
        instance.vk.vkGetPhysicalDeviceProperties(handles[i], &properties)
        physical.family_count = MAX_FAMILIES
        instance.vk.vkGetPhysicalDeviceQueueFamilyProperties(
            handles[i], &physical.family_count, physical.families)
        if properties.apiVersion >= LEAST_VERSION and compute_family(&physical) >= 0:
            found[number[0]] = handles[i]
            number[0] += 1
    return VKRT_OK


cdef int check_version(const Physical* physical, Error* error) noexcept nogil:
    cdef uint32_t version = physical.properties.properties.apiVersion
    if version < LEAST_VERSION:
        return fail(error, VKRT_ERROR_UNSUPPORTED, b"%s has Vulkan %d.%d.%d; vkrt needs %d.%d",
                    physical.properties.properties.deviceName, <int>VK_VERSION_MAJOR(version),
                    <int>VK_VERSION_MINOR(version), <int>VK_VERSION_PATCH(version),
                    <int>VK_VERSION_MAJOR(LEAST_VERSION), <int>VK_VERSION_MINOR(LEAST_VERSION))
    return VKRT_OK


cdef int check_family(const Physical* physical, uint32_t family, Error* error) noexcept nogil:
    if family >= physical.family_count:
        return fail(error, VKRT_ERROR_INPUT,
                    b"queue_family=%u: expected one of the device's %u families", family,
                    physical.family_count)
    if not physical.families[family].queueFlags & VK_QUEUE_COMPUTE_BIT:
        return fail(error, VKRT_ERROR_INPUT,
                    b"queue_family=%u: expected a family that does compute", family)
    return VKRT_OK


cdef int compute_family(const Physical* physical) noexcept nogil:
    cdef uint32_t i
    for i in range(physical.family_count):
        if physical.families[i].queueFlags & VK_QUEUE_COMPUTE_BIT:
            return i
    return -1


cdef int upload_family(const Physical* physical, int compute) noexcept nogil:
    cdef uint32_t i
    for i in range(physical.family_count):
        if (physical.families[i].queueFlags & VK_QUEUE_TRANSFER_BIT
                and not physical.families[i].queueFlags
                & (VK_QUEUE_COMPUTE_BIT | VK_QUEUE_GRAPHICS_BIT)):
            return i
    return compute


cdef uint32_t timestamp_bits(const Physical* physical, int family) noexcept nogil:
    if 0 <= family < <int>physical.family_count:
        return physical.families[family].timestampValidBits
    return 0
