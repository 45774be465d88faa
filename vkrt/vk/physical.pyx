"""What a physical device offers, as a `DeviceInfo`, and which features vkrt switches on."""

from libc.stdint cimport uint32_t, uint64_t

from vkrt.core.capability cimport Capability, capability_at, capability_count
from vkrt.core.device_choice cimport device_type_name
from vkrt.core.error cimport Error
from vkrt.core.features cimport Feature as CoreFeature
from vkrt.core.features cimport feature_at, feature_count, feature_named
from vkrt.core.instance cimport Instance
from vkrt.core.physical cimport (
    LEAST_VERSION, MAX_DEVICES, Physical, compute_family, free_physical, read_physical,
    timestamp_bits, usable_devices,
)
from vkrt.core.vulkan cimport *
from vkrt.vk.check cimport check_status

from vkrt.vk.info import DeviceInfo, Feature
from vkrt.vk.memory_types import property_names

# Bits of VkSubgroupFeatureFlags from the lowest
SUBGROUP_OPERATIONS = ("basic", "vote", "arithmetic", "ballot", "shuffle", "shuffle_relative",
                       "clustered", "quad")


def used_features():
    """What vkrt switches on where a device has it, as a tuple of `vkrt.vk.info.Feature`s."""
    cdef const CoreFeature* feature
    found = []
    for i in range(feature_count()):
        feature = feature_at(i)
        extension = feature.extension.decode()
        if feature.field[0] != 0:
            found.append(Feature(feature.name.decode(), feature.field.decode(),
                                 feature.vulkan_struct.decode(), extension,
                                 version_text(feature.version)[:3]))
        else:
            found.append(Feature(feature.name.decode() or extension, extension=extension))
    return tuple(found)


def features_by_capability():
    """By the name of a SPIR-V capability: the feature of the device that allows it, or None where
    every device does."""
    cdef const Capability* capability
    found = {}
    for i in range(capability_count()):
        capability = capability_at(i)
        found[capability.name.decode()] = (
            capability.feature.decode() if capability.feature != NULL else None)
    return found


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


cdef uint64_t feature_set(names) except? 0:
    cdef uint64_t features = 0
    cdef int number
    for name in names:
        number = feature_named(name.encode())
        if number >= 0:
            features |= <uint64_t>1 << number
    return features


cdef list list_devices(Instance* instance):
    cdef VkPhysicalDevice[MAX_DEVICES] found
    cdef Physical physical
    cdef Error error
    cdef int number
    check_status(usable_devices(instance, found, &number, &error), &error)
    result = []
    for i in range(number):
        try:
            check_status(read_physical(instance, found[i], &physical, &error), &error)
            result.append((<size_t>found[i], describe(&physical, i)))
        finally:
            free_physical(&physical)
    return result


cdef dict features_of(const Physical* physical):
    cdef const CoreFeature* feature
    found = {}
    for i in range(feature_count()):
        feature = feature_at(i)
        if feature.name[0] != 0:
            found[feature.name.decode()] = physical.features >> i & 1 != 0
    usable = bool(physical.subgroup.supportedStages & VK_SHADER_STAGE_COMPUTE_BIT)
    for i, operation in enumerate(SUBGROUP_OPERATIONS):
        found[f"subgroup_{operation}"] = (
            usable and physical.subgroup.supportedOperations >> <int>i & 1 != 0)
    found["accelerated_dot_product"] = (
        physical.dot_product.integerDotProduct4x8BitPackedSignedAccelerated != 0)
    found["can_keep_nan"] = (
        physical.float_controls.shaderSignedZeroInfNanPreserveFloat32 != 0)
    found["timestamps"] = timestamp_bits(physical, compute_family(physical)) > 0
    return found


cdef object describe(const Physical* physical, int index):
    """The `DeviceInfo` of a physical device."""
    cdef const VkPhysicalDeviceProperties* properties = &physical.properties.properties
    cdef dict limits = properties.limits
    cdef const VkPhysicalDeviceMemoryProperties* memory = &physical.memory
    cdef int i
    extensions = {(<bytes>physical.extensions[i].extensionName).decode()
                  for i in range(<int>physical.extension_count)}
    heaps = [{"size": memory.memoryHeaps[i].size,
              "device_local": bool(memory.memoryHeaps[i].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT)}
             for i in range(<int>memory.memoryHeapCount)]
    types = [(memory.memoryTypes[i].heapIndex, property_names(memory.memoryTypes[i].propertyFlags))
             for i in range(<int>memory.memoryTypeCount)]
    for name in ("maxComputeWorkGroupCount", "maxComputeWorkGroupSize"):
        limits[name] = tuple(limits[name])
    limits |= {
        "maxMemoryAllocationSize": physical.maintenance.maxMemoryAllocationSize,
        "minImportedHostPointerAlignment": physical.imports.minImportedHostPointerAlignment,
        "timestampPeriod": limits.pop("timestampPeriod"),
        "subgroupSize": physical.subgroup.subgroupSize,
    }
    return DeviceInfo(
        index=index,
        name=(<bytes>properties.deviceName).decode(errors="replace"),
        type=device_type_name(physical).decode(),
        vendor_id=properties.vendorID,
        device_id=properties.deviceID,
        driver_id=physical.driver.driverID,
        driver_name=(<bytes>physical.driver.driverName).decode(errors="replace"),
        driver_info=(<bytes>physical.driver.driverInfo).decode(errors="replace"),
        api_version=version_text(properties.apiVersion),
        heaps=heaps,
        memory_types=types,
        limits=limits,
        features=features_of(physical),
        extensions=tuple(sorted(extensions)),
        driver_version=properties.driverVersion,
        cache_uuid=(<bytes>properties.pipelineCacheUUID[:16]).hex())


cdef str version_text(uint32_t version):
    return f"{VK_VERSION_MAJOR(version)}.{VK_VERSION_MINOR(version)}.{VK_VERSION_PATCH(version)}"
