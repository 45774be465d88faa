# cython: language_level=3
"""What a physical device offers, as a `DeviceInfo`, and which features vkrt switches on."""

from libc.stdlib cimport calloc, free
from libc.string cimport memset

from vkrt.vk.api cimport *
from vkrt.vk.check cimport check

from vkrt.errors import InputError, UnsupportedError
from vkrt.vk.info import DeviceInfo, Feature

TYPES = {
    VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU: "integrated",
    VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU: "discrete",
    VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU: "virtual",
    VK_PHYSICAL_DEVICE_TYPE_CPU: "cpu",
}

MEMORY_FLAGS = (
    (VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT, "device_local"),
    (VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT, "host_visible"),
    (VK_MEMORY_PROPERTY_HOST_COHERENT_BIT, "host_coherent"),
    (VK_MEMORY_PROPERTY_HOST_CACHED_BIT, "host_cached"),
    (VK_MEMORY_PROPERTY_LAZILY_ALLOCATED_BIT, "lazily_allocated"),
    (VK_MEMORY_PROPERTY_PROTECTED_BIT, "protected"),
)

# Bits of VkSubgroupFeatureFlags from the lowest
SUBGROUP_OPERATIONS = ("basic", "vote", "arithmetic", "ballot", "shuffle", "shuffle_relative",
                       "clustered", "quad")

# The least that vkrt works with
LEAST_VERSION = VK_API_VERSION_1_1
# Extensions of the chain's structs -> the version that made each part of the core, and the struct
PROMOTED = {
    "VK_KHR_8bit_storage": (VK_API_VERSION_1_2, "VkPhysicalDevice8BitStorageFeatures"),
    "VK_KHR_shader_float16_int8":
        (VK_API_VERSION_1_2, "VkPhysicalDeviceShaderFloat16Int8Features"),
    "VK_KHR_timeline_semaphore":
        (VK_API_VERSION_1_2, "VkPhysicalDeviceTimelineSemaphoreFeatures"),
    "VK_KHR_maintenance4": (VK_API_VERSION_1_3, "VkPhysicalDeviceMaintenance4Features"),
    "VK_KHR_shader_integer_dot_product":
        (VK_API_VERSION_1_3, "VkPhysicalDeviceShaderIntegerDotProductFeatures"),
}
# Extensions that are switched on where they are there -> the name of what they allow, if it has
# one. VK_KHR_portability_subset has to be enabled where it exists.
ALWAYS = {
    "VK_EXT_memory_budget": "memory_budget",
    "VK_EXT_external_memory_host": "ext_memory_host",
    "VK_KHR_portability_subset": "",
}


cdef bint knows(str extension, uint32_t version, extensions):
    return extension in extensions or version >= PROMOTED[extension][0]


cdef int link_features(FeatureChain* chain, uint32_t version, extensions) except -1:
    memset(chain, 0, sizeof(FeatureChain))
    chain.core.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2
    chain.storage16.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES
    chain.storage8.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_8BIT_STORAGE_FEATURES
    chain.float16_int8.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES
    chain.timeline.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES
    chain.maintenance4.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_4_FEATURES
    chain.dot_product.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES
    chain.core.pNext = &chain.storage16
    cdef void** last = &chain.storage16.pNext
    if knows("VK_KHR_8bit_storage", version, extensions):
        last[0] = &chain.storage8
        last = &chain.storage8.pNext
    if knows("VK_KHR_shader_float16_int8", version, extensions):
        last[0] = &chain.float16_int8
        last = &chain.float16_int8.pNext
    if knows("VK_KHR_timeline_semaphore", version, extensions):
        last[0] = &chain.timeline
        last = &chain.timeline.pNext
    if knows("VK_KHR_maintenance4", version, extensions):
        last[0] = &chain.maintenance4
        last = &chain.maintenance4.pNext
    if knows("VK_KHR_shader_integer_dot_product", version, extensions):
        last[0] = &chain.dot_product
    return 0


cdef dict feature_places(FeatureChain* chain):
    """Feature name -> (name of the Vulkan struct, its field, the field's address: a VkBool32).

    The one list of features vkrt uses.
    """
    core, storage16 = "VkPhysicalDeviceFeatures", "VkPhysicalDevice16BitStorageFeatures"
    storage8, float16_int8, timeline, maintenance4, dot_product = [
        struct for _, struct in PROMOTED.values()]
    return {
        "int16": (core, "shaderInt16", <size_t>&chain.core.features.shaderInt16),
        "int64": (core, "shaderInt64", <size_t>&chain.core.features.shaderInt64),
        "storage_image_extended_formats":
            (core, "shaderStorageImageExtendedFormats",
             <size_t>&chain.core.features.shaderStorageImageExtendedFormats),
        "storage_image_read_without_format":
            (core, "shaderStorageImageReadWithoutFormat",
             <size_t>&chain.core.features.shaderStorageImageReadWithoutFormat),
        "storage_image_write_without_format":
            (core, "shaderStorageImageWriteWithoutFormat",
             <size_t>&chain.core.features.shaderStorageImageWriteWithoutFormat),
        "storage16": (storage16, "storageBuffer16BitAccess",
                      <size_t>&chain.storage16.storageBuffer16BitAccess),
        "uniform16": (storage16, "uniformAndStorageBuffer16BitAccess",
                      <size_t>&chain.storage16.uniformAndStorageBuffer16BitAccess),
        "push_constant16": (storage16, "storagePushConstant16",
                            <size_t>&chain.storage16.storagePushConstant16),
        "storage8": (storage8, "storageBuffer8BitAccess",
                     <size_t>&chain.storage8.storageBuffer8BitAccess),
        "uniform8": (storage8, "uniformAndStorageBuffer8BitAccess",
                     <size_t>&chain.storage8.uniformAndStorageBuffer8BitAccess),
        "push_constant8": (storage8, "storagePushConstant8",
                           <size_t>&chain.storage8.storagePushConstant8),
        "float16": (float16_int8, "shaderFloat16", <size_t>&chain.float16_int8.shaderFloat16),
        "int8": (float16_int8, "shaderInt8", <size_t>&chain.float16_int8.shaderInt8),
        "timeline": (timeline, "timelineSemaphore", <size_t>&chain.timeline.timelineSemaphore),
        "maintenance4": (maintenance4, "maintenance4", <size_t>&chain.maintenance4.maintenance4),
        "integer_dot_product": (dot_product, "shaderIntegerDotProduct",
                                <size_t>&chain.dot_product.shaderIntegerDotProduct),
    }


def used_features():
    """What vkrt switches on where a device has it, as a tuple of `vkrt.vk.info.Feature`s."""
    cdef FeatureChain chain
    extension_of = {struct: name for name, (_, struct) in PROMOTED.items()}
    found = []
    for name, (struct, field, _) in feature_places(&chain).items():
        extension = extension_of.get(struct, "")
        core = PROMOTED[extension][0] if extension else LEAST_VERSION
        found.append(Feature(name, field, struct, extension, version_text(core)[:3]))
    found += [Feature(name or extension, extension=extension)
              for extension, name in ALWAYS.items()]
    return tuple(found)


def least_version():
    """The Vulkan version that vkrt needs, such as "1.1"."""
    return version_text(LEAST_VERSION)[:3]


def feature_names(names):
    """Features by vkrt's names, of which the names in Vulkan are known too: fields of its structs,
    and extensions. What is known by no name stays as it is."""
    known = {}
    for feature in used_features():
        known[feature.field or feature.extension] = feature.name
    return {known.get(name, name) for name in names}


cdef int set_features(FeatureChain* chain, names) except -1:
    cdef size_t place
    for name, (_, _, place) in feature_places(chain).items():
        (<VkBool32*>place)[0] = name in names
    return 0


cdef list wanted_extensions(uint32_t version, extensions):
    names = [name for name in ALWAYS if name in extensions]
    names += [name for name, (core, _) in PROMOTED.items()
              if version < core and name in extensions]
    return [name.encode() for name in names]


cdef uint32_t common_version(Instance instance, VkPhysicalDevice physical) except 0:
    cdef VkPhysicalDeviceProperties properties
    instance.vk.vkGetPhysicalDeviceProperties(physical, &properties)
    return min(<uint32_t>instance.api_version, properties.apiVersion)


cdef int check_version(Instance instance, VkPhysicalDevice physical) except -1:
    cdef VkPhysicalDeviceProperties properties
    instance.vk.vkGetPhysicalDeviceProperties(physical, &properties)
    if properties.apiVersion < LEAST_VERSION:
        raise UnsupportedError(f"{(<bytes>properties.deviceName).decode(errors='replace')} has "
                               f"Vulkan {version_text(properties.apiVersion)}; vkrt needs "
                               f"{least_version()}")
    return 0


cdef int compute_family(Instance instance, VkPhysicalDevice physical):
    cdef VkQueueFamilyProperties families[32]
    cdef uint32_t number = 32
    cdef uint32_t i
    instance.vk.vkGetPhysicalDeviceQueueFamilyProperties(physical, &number, families)
    for i in range(number):
        if families[i].queueFlags & VK_QUEUE_COMPUTE_BIT:
            return i
    return -1


cdef int check_family(Instance instance, VkPhysicalDevice physical, uint32_t family) except -1:
    cdef VkQueueFamilyProperties families[32]
    cdef uint32_t number = 32
    instance.vk.vkGetPhysicalDeviceQueueFamilyProperties(physical, &number, families)
    if family >= number:
        raise InputError(f"queue_family={family}: expected one of the device's {number} families")
    if not families[family].queueFlags & VK_QUEUE_COMPUTE_BIT:
        raise InputError(f"queue_family={family}: expected a family that does compute")
    return 0


cdef uint32_t timestamp_bits_of(Instance instance, VkPhysicalDevice physical, int family):
    cdef VkQueueFamilyProperties families[32]
    cdef uint32_t number = 32
    instance.vk.vkGetPhysicalDeviceQueueFamilyProperties(physical, &number, families)
    return families[family].timestampValidBits if 0 <= family < <int>number else 0


cdef int upload_family(Instance instance, VkPhysicalDevice physical, int compute):
    cdef VkQueueFamilyProperties families[32]
    cdef uint32_t number = 32
    cdef uint32_t i
    instance.vk.vkGetPhysicalDeviceQueueFamilyProperties(physical, &number, families)
    for i in range(number):
        if (families[i].queueFlags & VK_QUEUE_TRANSFER_BIT and not families[i].queueFlags
                & (VK_QUEUE_COMPUTE_BIT | VK_QUEUE_GRAPHICS_BIT)):
            return i
    return compute


cdef set device_extensions(Instance instance, VkPhysicalDevice physical):
    cdef uint32_t number = 0
    check(instance.vk.vkEnumerateDeviceExtensionProperties(physical, NULL, &number, NULL),
          b"vkEnumerateDeviceExtensionProperties")
    cdef VkExtensionProperties* found = <VkExtensionProperties*>calloc(
        number + 1, sizeof(VkExtensionProperties))
    if found == NULL:
        raise MemoryError
    try:
        check(instance.vk.vkEnumerateDeviceExtensionProperties(physical, NULL, &number, found),
              b"vkEnumerateDeviceExtensionProperties")
        return {(<bytes>found[i].extensionName).decode() for i in range(number)}
    finally:
        free(found)


cdef list usable_devices(Instance instance):
    cdef VkPhysicalDevice found[64]
    cdef VkPhysicalDeviceProperties properties
    cdef uint32_t number = 64
    cdef uint32_t i
    check(instance.vk.vkEnumeratePhysicalDevices(instance.handle, &number, found),
          b"vkEnumeratePhysicalDevices")
    result = []
    for i in range(number):
        instance.vk.vkGetPhysicalDeviceProperties(found[i], &properties)
        if (properties.apiVersion >= LEAST_VERSION
                and compute_family(instance, found[i]) >= 0):
            result.append((<size_t>found[i], describe(instance, found[i], len(result))))
    return result


cdef object describe(Instance instance, VkPhysicalDevice physical, int index):
    """The `DeviceInfo` of a physical device."""
    cdef VkPhysicalDeviceProperties2 properties
    cdef VkPhysicalDeviceDriverProperties driver
    cdef VkPhysicalDeviceSubgroupProperties subgroup
    cdef VkPhysicalDeviceMaintenance3Properties maintenance
    cdef VkPhysicalDeviceExternalMemoryHostPropertiesEXT host
    cdef VkPhysicalDeviceMemoryProperties memory
    cdef FeatureChain chain
    cdef uint32_t version = common_version(instance, physical)
    cdef int i
    cdef size_t place
    extensions = device_extensions(instance, physical)

    memset(&properties, 0, sizeof(properties))
    memset(&driver, 0, sizeof(driver))
    memset(&subgroup, 0, sizeof(subgroup))
    memset(&maintenance, 0, sizeof(maintenance))
    memset(&host, 0, sizeof(host))
    properties.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2
    subgroup.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES
    maintenance.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES
    driver.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES
    host.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_MEMORY_HOST_PROPERTIES_EXT
    properties.pNext = &subgroup
    subgroup.pNext = &maintenance
    cdef void** last = &maintenance.pNext
    if version >= VK_API_VERSION_1_2 or "VK_KHR_driver_properties" in extensions:
        last[0] = &driver
        last = &driver.pNext
    if "VK_EXT_external_memory_host" in extensions:
        last[0] = &host
    instance.vk.vkGetPhysicalDeviceProperties2(physical, &properties)
    cdef VkPhysicalDeviceLimits* limits = &properties.properties.limits

    link_features(&chain, version, extensions)
    instance.vk.vkGetPhysicalDeviceFeatures2(physical, &chain.core)
    features = {}
    for name, (_, _, place) in feature_places(&chain).items():
        features[name] = (<VkBool32*>place)[0] != 0
    for extension, name in ALWAYS.items():
        if name:
            features[name] = extension in extensions
    usable = bool(subgroup.supportedStages & VK_SHADER_STAGE_COMPUTE_BIT)
    for i, operation in enumerate(SUBGROUP_OPERATIONS):
        features[f"subgroup_{operation}"] = usable and subgroup.supportedOperations >> i & 1 != 0
    features["timestamps"] = timestamp_bits_of(instance, physical,
                                               compute_family(instance, physical)) > 0

    instance.vk.vkGetPhysicalDeviceMemoryProperties(physical, &memory)
    heaps = [{"size": memory.memoryHeaps[i].size,
              "device_local": bool(memory.memoryHeaps[i].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT)}
             for i in range(<int>memory.memoryHeapCount)]
    types = [(memory.memoryTypes[i].heapIndex,
              tuple(name for flag, name in MEMORY_FLAGS
                    if memory.memoryTypes[i].propertyFlags & flag))
             for i in range(<int>memory.memoryTypeCount)]
    return DeviceInfo(
        index=index,
        name=(<bytes>properties.properties.deviceName).decode(errors="replace"),
        type=TYPES.get(properties.properties.deviceType, "other"),
        vendor_id=properties.properties.vendorID,
        device_id=properties.properties.deviceID,
        driver_id=driver.driverID,
        driver_name=(<bytes>driver.driverName).decode(errors="replace"),
        driver_info=(<bytes>driver.driverInfo).decode(errors="replace"),
        api_version=version_text(properties.properties.apiVersion),
        heaps=heaps,
        memory_types=types,
        limits={
            "maxStorageBufferRange": limits.maxStorageBufferRange,
            "maxTexelBufferElements": limits.maxTexelBufferElements,
            "maxImageDimension1D": limits.maxImageDimension1D,
            "maxImageDimension3D": limits.maxImageDimension3D,
            "maxBoundDescriptorSets": limits.maxBoundDescriptorSets,
            "maxPerStageDescriptorStorageBuffers": limits.maxPerStageDescriptorStorageBuffers,
            "maxPerStageDescriptorSampledImages": limits.maxPerStageDescriptorSampledImages,
            "maxPerStageDescriptorStorageImages": limits.maxPerStageDescriptorStorageImages,
            "maxComputeSharedMemorySize": limits.maxComputeSharedMemorySize,
            "maxComputeWorkGroupCount": tuple(limits.maxComputeWorkGroupCount[i]
                                              for i in range(3)),
            "maxComputeWorkGroupInvocations": limits.maxComputeWorkGroupInvocations,
            "maxComputeWorkGroupSize": tuple(limits.maxComputeWorkGroupSize[i] for i in range(3)),
            "maxPushConstantsSize": limits.maxPushConstantsSize,
            "minStorageBufferOffsetAlignment": limits.minStorageBufferOffsetAlignment,
            "minTexelBufferOffsetAlignment": limits.minTexelBufferOffsetAlignment,
            "bufferImageGranularity": limits.bufferImageGranularity,
            "nonCoherentAtomSize": limits.nonCoherentAtomSize,
            "maxMemoryAllocationCount": limits.maxMemoryAllocationCount,
            "maxMemoryAllocationSize": maintenance.maxMemoryAllocationSize,
            "minImportedHostPointerAlignment": host.minImportedHostPointerAlignment,
            "timestampPeriod": limits.timestampPeriod,
            "subgroupSize": subgroup.subgroupSize,
        },
        features=features,
        extensions=tuple(sorted(extensions)),
        driver_version=properties.properties.driverVersion,
        cache_uuid=(<bytes>properties.properties.pipelineCacheUUID[:16]).hex())


cdef str version_text(uint32_t version):
    return f"{VK_VERSION_MAJOR(version)}.{VK_VERSION_MINOR(version)}.{VK_VERSION_PATCH(version)}"
