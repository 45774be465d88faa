# cython: language_level=3

from libc.string cimport memset, strcmp

from vkrt.core.vulkan cimport *

cdef extern from * nogil:
    """
    #include <stddef.h>
    #define VKRT_PART(part, type, field, name, extension, version) \\
        {name, #type, #field, extension, version, offsetof(VkrtFeatureChain, part.field)}
    #define VKRT_CORE(field, name) \\
        {name, "VkPhysicalDeviceFeatures", #field, "", VK_API_VERSION_1_1, \\
         offsetof(VkrtFeatureChain, core.features.field)}
    #define VKRT_STORAGE16(field, name) VKRT_PART( \\
        storage16, VkPhysicalDevice16BitStorageFeatures, field, name, "", VK_API_VERSION_1_1)
    #define VKRT_STORAGE8(field, name) VKRT_PART( \\
        storage8, VkPhysicalDevice8BitStorageFeatures, field, name, "VK_KHR_8bit_storage", \\
        VK_API_VERSION_1_2)
    #define VKRT_FLOAT16_INT8(field, name) VKRT_PART( \\
        float16_int8, VkPhysicalDeviceShaderFloat16Int8Features, field, name, \\
        "VK_KHR_shader_float16_int8", VK_API_VERSION_1_2)
    #define VKRT_EXTENSION(extension, name, version) {name, "", "", extension, version, 0}
    static const VkrtFeature vkrt_features[] = {
      VKRT_CORE(shaderInt16, "int16"),
      VKRT_CORE(shaderInt64, "int64"),
      VKRT_CORE(shaderStorageImageExtendedFormats, "storage_image_extended_formats"),
      VKRT_CORE(shaderStorageImageReadWithoutFormat, "storage_image_read_without_format"),
      VKRT_CORE(shaderStorageImageWriteWithoutFormat, "storage_image_write_without_format"),
      VKRT_STORAGE16(storageBuffer16BitAccess, "storage16"),
      VKRT_STORAGE16(uniformAndStorageBuffer16BitAccess, "uniform16"),
      VKRT_STORAGE16(storagePushConstant16, "push_constant16"),
      VKRT_STORAGE8(storageBuffer8BitAccess, "storage8"),
      VKRT_STORAGE8(uniformAndStorageBuffer8BitAccess, "uniform8"),
      VKRT_STORAGE8(storagePushConstant8, "push_constant8"),
      VKRT_FLOAT16_INT8(shaderFloat16, "float16"),
      VKRT_FLOAT16_INT8(shaderInt8, "int8"),
      VKRT_PART(timeline, VkPhysicalDeviceTimelineSemaphoreFeatures, timelineSemaphore, "timeline",
                "VK_KHR_timeline_semaphore", VK_API_VERSION_1_2),
      VKRT_PART(maintenance4, VkPhysicalDeviceMaintenance4Features, maintenance4, "maintenance4",
                "VK_KHR_maintenance4", VK_API_VERSION_1_3),
      VKRT_PART(dot_product, VkPhysicalDeviceShaderIntegerDotProductFeatures,
                shaderIntegerDotProduct, "integer_dot_product", "VK_KHR_shader_integer_dot_product",
                VK_API_VERSION_1_3),
      /* Switched on where they are there; the last has to be enabled where it exists. */
      VKRT_EXTENSION("VK_KHR_shader_float_controls", "float_controls", VK_API_VERSION_1_2),
      VKRT_EXTENSION("VK_EXT_memory_budget", "memory_budget", 0),
      VKRT_EXTENSION("VK_EXT_external_memory_host", "ext_memory_host", 0),
      VKRT_EXTENSION("VK_KHR_portability_subset", "", 0)
    };
    enum { VKRT_FEATURE_COUNT = sizeof vkrt_features / sizeof vkrt_features[0] };
    """
    const Feature* features "vkrt_features"
    int FEATURE_COUNT "VKRT_FEATURE_COUNT"


cdef int feature_count() noexcept nogil:
    return FEATURE_COUNT


cdef const Feature* feature_at(int number) noexcept nogil:
    return &features[number]


cdef int feature_named(const char* name) noexcept nogil:
    cdef int i
    for i in range(FEATURE_COUNT):
        if strcmp(features[i].name, name) == 0:
            return i
    return -1


cdef bint has_feature(uint64_t features, const char* name) noexcept nogil:
    cdef int number = feature_named(name)
    return number >= 0 and features >> number & 1


cdef bint knows(const char* extension, uint32_t version, HasExtension has,
                const void* data) noexcept nogil:
    cdef int i
    for i in range(FEATURE_COUNT):
        if strcmp(features[i].extension, extension) == 0:
            return version >= features[i].version or has(data, extension)
    return False


cdef void link_features(FeatureChain* chain, uint32_t version, HasExtension has,
                        const void* data) noexcept nogil:
    cdef void** last
    memset(chain, 0, sizeof(FeatureChain))
    chain.core.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2
    chain.storage16.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES
    chain.storage8.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_8BIT_STORAGE_FEATURES
    chain.float16_int8.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES
    chain.timeline.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES
    chain.maintenance4.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_4_FEATURES
    chain.dot_product.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES
    chain.core.pNext = &chain.storage16
    last = &chain.storage16.pNext
    if knows(b"VK_KHR_8bit_storage", version, has, data):
        last[0] = &chain.storage8
        last = &chain.storage8.pNext
    if knows(b"VK_KHR_shader_float16_int8", version, has, data):
        last[0] = &chain.float16_int8
        last = &chain.float16_int8.pNext
    if knows(b"VK_KHR_timeline_semaphore", version, has, data):
        last[0] = &chain.timeline
        last = &chain.timeline.pNext
    if knows(b"VK_KHR_maintenance4", version, has, data):
        last[0] = &chain.maintenance4
        last = &chain.maintenance4.pNext
    if knows(b"VK_KHR_shader_integer_dot_product", version, has, data):
        last[0] = &chain.dot_product


cdef VkBool32* field_of(FeatureChain* chain, int number) noexcept nogil:
    """NULL where an extension allows the feature."""
    if features[number].field[0] == 0:
        return NULL
    return <VkBool32*>(<char*>chain + features[number].offset)


cdef void set_features(FeatureChain* chain, uint64_t wanted) noexcept nogil:
    cdef int i
    cdef VkBool32* field
    for i in range(FEATURE_COUNT):
        field = field_of(chain, i)
        if field != NULL:
            field[0] = wanted >> i & 1


cdef uint64_t features_of(const FeatureChain* chain, HasExtension has,
                          const void* data) noexcept nogil:
    cdef uint64_t found = 0
    cdef int i
    cdef VkBool32* field
    for i in range(FEATURE_COUNT):
        field = field_of(<FeatureChain*>chain, i)
        if field[0] != 0 if field != NULL else has(data, features[i].extension):
            found |= <uint64_t>1 << i
    return found


cdef uint32_t wanted_extensions(uint32_t version, HasExtension has, const void* data,
                                const char** names) noexcept nogil:
    cdef uint32_t number = 0
    cdef int i
    for i in range(FEATURE_COUNT):
        if i > 0 and strcmp(features[i].extension, features[i - 1].extension) == 0:
            continue  # features of one extension stand side by side
        if (features[i].extension[0] != 0 and has(data, features[i].extension)
                and (features[i].version == 0 or version < features[i].version)):
            names[number] = features[i].extension
            number += 1
    return number
