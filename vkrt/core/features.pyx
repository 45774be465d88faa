from libc.string cimport memset, strcmp

from vkrt.core.vulkan cimport *

cdef extern from * nogil:
    """
    #include <stddef.h>
    #define VKRT_FIELD(part, vulkan_struct, TYPE, path, field, name, extension, version) \\
        {name, #vulkan_struct, #field, extension, version, \\
         VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_##TYPE, offsetof(VkrtFeatureChain, part), \\
         offsetof(VkrtFeatureChain, part.path field)}
    #define VKRT_PART(part, kind, KIND, field, name, extension, version) VKRT_FIELD( \\
        part, VkPhysicalDevice##kind##Features, KIND##_FEATURES, , field, name, extension, version)
    #define VKRT_CORE(field, name) VKRT_FIELD( \\
        core, VkPhysicalDeviceFeatures, FEATURES_2, features., field, name, "", VK_API_VERSION_1_1)
    #define VKRT_STORAGE16(field, name) VKRT_PART( \\
        storage16, 16BitStorage, 16BIT_STORAGE, field, name, "", VK_API_VERSION_1_1)
    #define VKRT_STORAGE8(field, name) VKRT_PART( \\
        storage8, 8BitStorage, 8BIT_STORAGE, field, name, "VK_KHR_8bit_storage", \\
        VK_API_VERSION_1_2)
    #define VKRT_FLOAT16_INT8(field, name) VKRT_PART( \\
        float16_int8, ShaderFloat16Int8, SHADER_FLOAT16_INT8, field, name, \\
        "VK_KHR_shader_float16_int8", VK_API_VERSION_1_2)
    #define VKRT_EXTENSION(extension, name, version) {name, "", "", extension, version, 0, 0, 0}
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
      VKRT_PART(timeline, TimelineSemaphore, TIMELINE_SEMAPHORE, timelineSemaphore, "timeline",
                "VK_KHR_timeline_semaphore", VK_API_VERSION_1_2),
      VKRT_PART(maintenance4, Maintenance4, MAINTENANCE_4, maintenance4, "maintenance4",
                "VK_KHR_maintenance4", VK_API_VERSION_1_3),
      VKRT_PART(dot_product, ShaderIntegerDotProduct, SHADER_INTEGER_DOT_PRODUCT,
                shaderIntegerDotProduct, "integer_dot_product",
                "VK_KHR_shader_integer_dot_product", VK_API_VERSION_1_3),
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


cdef void link_features(FeatureChain* chain, uint32_t version, HasExtension has,
                        const void* data) noexcept nogil:
    cdef VkBaseOutStructure* last = <VkBaseOutStructure*>chain
    cdef VkBaseOutStructure* part
    cdef const Feature* feature
    cdef int i
    memset(chain, 0, sizeof(FeatureChain))
    for i in range(FEATURE_COUNT):
        feature = &features[i]
        part = <VkBaseOutStructure*>(<char*>chain + feature.struct_offset)
        # An extension has no struct; of one with several features only the first comes here.
        if feature.field[0] == 0 or part.sType == feature.type:
            continue
        part.sType = feature.type
        if part != last and (version >= feature.version or has(data, feature.extension)):
            last.pNext = part
            last = part


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
