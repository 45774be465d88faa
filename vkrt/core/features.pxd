"""The features of devices that vkrt uses: the one list of them."""

from libc.stdint cimport uint32_t, uint64_t

from vkrt.core.vulkan cimport VkPhysicalDeviceFeatures2, VkStructureType

cdef extern from * nogil:
    """
    #ifndef VKRT_CORE_FEATURES
    #define VKRT_CORE_FEATURES
    /* Those that vkrt looks into, chained behind `core` as far as the device knows them */
    typedef struct {
      VkPhysicalDeviceFeatures2 core;
      VkPhysicalDevice16BitStorageFeatures storage16;
      VkPhysicalDevice8BitStorageFeatures storage8;
      VkPhysicalDeviceShaderFloat16Int8Features float16_int8;
      VkPhysicalDeviceTimelineSemaphoreFeatures timeline;
      VkPhysicalDeviceMaintenance4Features maintenance4;
      VkPhysicalDeviceShaderIntegerDotProductFeatures dot_product;
    } VkrtFeatureChain;
    typedef struct {
      const char* name;
      const char* vulkan_struct;
      const char* field;
      const char* extension;
      uint32_t version;
      VkStructureType type;
      size_t struct_offset;
      size_t offset;
    } VkrtFeature;
    #endif
    """
    ctypedef struct FeatureChain "VkrtFeatureChain":
        VkPhysicalDeviceFeatures2 core
    ctypedef struct Feature "VkrtFeature":
        const char* name  # vkrt's; "" where an extension allows nothing that has a name
        const char* vulkan_struct  # of Vulkan, whose `field` it is; "" where an extension allows it
        const char* field
        const char* extension  # which has the struct; "" where Vulkan 1.1 does
        uint32_t version  # of Vulkan, which has the struct without the extension; 0: none has
        VkStructureType type  # of the struct
        size_t struct_offset  # of the struct in the chain
        size_t offset  # of the field, a VkBool32, in the chain

# Has to hold for every extension of a device; `data` is the caller's.
ctypedef bint (*HasExtension)(const void* data, const char* name) noexcept nogil

cdef extern nogil:
    # Feature number i is bit i of a set of features. Those that are fields come first; subgroup
    # operations (with the bits of VkSubgroupFeatureFlags) and timestamps follow.
    int feature_count "vkrt_feature_count"()
    const Feature* feature_at "vkrt_feature_at"(int number)
    # -1: no such name
    int feature_named "vkrt_feature_named"(const char* name)
    # Whether the feature of this name is in a set.
    bint has_feature "vkrt_has_feature"(uint64_t features, const char* name)
    # Clears and links the chain for a device of this version with these extensions.
    void link_features "vkrt_link_features"(FeatureChain* chain, uint32_t version, HasExtension has,
                                            const void* data)
    # Switches the fields of the features of a set on, and all others off.
    void set_features "vkrt_set_features"(FeatureChain* chain, uint64_t features)
    # Those whose fields are on, or whose extension is there
    uint64_t features_of "vkrt_features_of"(const FeatureChain* chain, HasExtension has,
                                            const void* data)
    # The names of the extensions to enable, which are those of the table; how many they are. There
    # is room for `feature_count()`.
    uint32_t wanted_extensions "vkrt_wanted_extensions"(uint32_t version, HasExtension has,
                                                        const void* data, const char** names)
