/* What the device says of itself: names, limits, features, extensions, queue families, formats. */
#include <stdlib.h>
#include <string.h>

#include "layer.h"

#define CORE VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2

/* Features that a profile may allow: (structure of Vulkan, field). All others of the structures
 * here are hidden, but for robustBufferAccess, which every device has. */
#define FEATURES(X) \
  X(16BIT_STORAGE_FEATURES, 16BitStorageFeatures, storageBuffer16BitAccess) \
  X(16BIT_STORAGE_FEATURES, 16BitStorageFeatures, uniformAndStorageBuffer16BitAccess) \
  X(8BIT_STORAGE_FEATURES, 8BitStorageFeatures, storageBuffer8BitAccess) \
  X(8BIT_STORAGE_FEATURES, 8BitStorageFeatures, uniformAndStorageBuffer8BitAccess) \
  X(SHADER_FLOAT16_INT8_FEATURES, ShaderFloat16Int8Features, shaderFloat16) \
  X(SHADER_FLOAT16_INT8_FEATURES, ShaderFloat16Int8Features, shaderInt8) \
  X(TIMELINE_SEMAPHORE_FEATURES, TimelineSemaphoreFeatures, timelineSemaphore) \
  X(MAINTENANCE_4_FEATURES, Maintenance4Features, maintenance4) \
  X(SHADER_INTEGER_DOT_PRODUCT_FEATURES, ShaderIntegerDotProductFeatures, \
    shaderIntegerDotProduct) \
  X(SYNCHRONIZATION_2_FEATURES, Synchronization2Features, synchronization2) \
  X(VULKAN_1_1_FEATURES, Vulkan11Features, storageBuffer16BitAccess) \
  X(VULKAN_1_1_FEATURES, Vulkan11Features, uniformAndStorageBuffer16BitAccess) \
  X(VULKAN_1_2_FEATURES, Vulkan12Features, storageBuffer8BitAccess) \
  X(VULKAN_1_2_FEATURES, Vulkan12Features, uniformAndStorageBuffer8BitAccess) \
  X(VULKAN_1_2_FEATURES, Vulkan12Features, shaderFloat16) \
  X(VULKAN_1_2_FEATURES, Vulkan12Features, shaderInt8) \
  X(VULKAN_1_2_FEATURES, Vulkan12Features, timelineSemaphore) \
  X(VULKAN_1_2_FEATURES, Vulkan12Features, descriptorIndexing) \
  X(VULKAN_1_3_FEATURES, Vulkan13Features, maintenance4) \
  X(VULKAN_1_3_FEATURES, Vulkan13Features, synchronization2) \
  X(VULKAN_1_3_FEATURES, Vulkan13Features, shaderIntegerDotProduct)
#define CORE_FEATURES(X) \
  X(robustBufferAccess) X(shaderInt16) X(shaderInt64) X(shaderFloat64) \
  X(shaderStorageImageExtendedFormats) X(shaderStorageImageReadWithoutFormat) \
  X(shaderStorageImageWriteWithoutFormat)

struct place {
  const char* name;
  VkStructureType type;
  size_t offset;
};

static const struct place places[] = {
#define PLACE(structure, kind, field) \
  {#field, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_##structure, offsetof(VkPhysicalDevice##kind, field)},
    FEATURES(PLACE)
#define CORE_PLACE(field) {#field, CORE, offsetof(VkPhysicalDeviceFeatures2, features.field)},
    CORE_FEATURES(CORE_PLACE)};

/* Structures of which everything that no profile can name is hidden, and where they end */
static const struct {
  VkStructureType type;
  size_t size;
} structures[] = {
#define STRUCTURE(structure, kind, field) \
  {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_##structure, \
   offsetof(VkPhysicalDevice##kind, field) + sizeof(VkBool32)},
    {CORE, offsetof(VkPhysicalDeviceFeatures2, features) + sizeof(VkPhysicalDeviceFeatures)},
    STRUCTURE(16BIT_STORAGE_FEATURES, 16BitStorageFeatures, storageInputOutput16)
    STRUCTURE(8BIT_STORAGE_FEATURES, 8BitStorageFeatures, storagePushConstant8)
    STRUCTURE(SHADER_FLOAT16_INT8_FEATURES, ShaderFloat16Int8Features, shaderInt8)
    STRUCTURE(TIMELINE_SEMAPHORE_FEATURES, TimelineSemaphoreFeatures, timelineSemaphore)
    STRUCTURE(MAINTENANCE_4_FEATURES, Maintenance4Features, maintenance4)
    STRUCTURE(SHADER_INTEGER_DOT_PRODUCT_FEATURES, ShaderIntegerDotProductFeatures,
              shaderIntegerDotProduct)
    STRUCTURE(SYNCHRONIZATION_2_FEATURES, Synchronization2Features, synchronization2)
    STRUCTURE(DESCRIPTOR_INDEXING_FEATURES, DescriptorIndexingFeatures, runtimeDescriptorArray)
    STRUCTURE(VULKAN_1_1_FEATURES, Vulkan11Features, shaderDrawParameters)
    STRUCTURE(VULKAN_1_2_FEATURES, Vulkan12Features, subgroupBroadcastDynamicId)
    STRUCTURE(VULKAN_1_3_FEATURES, Vulkan13Features, maintenance4)};

static const char* name_of(VkStructureType type, size_t offset) {
  for (size_t i = 0; i < sizeof places / sizeof places[0]; i++)
    if (places[i].type == type && places[i].offset == offset) return places[i].name;
  return "that has no name here";
}

static bool is_allowed(const char* name) {
  return !strcmp(name, "robustBufferAccess")
         || is_listed(profile.features, profile.feature_count, name);
}

/* The first feature of a structure that is on and not allowed; with `hide` it is off then. */
static const char* first_hidden(void* structure, bool hide) {
  VkStructureType type = ((VkBaseOutStructure*)structure)->sType;
  for (size_t i = 0; i < sizeof structures / sizeof structures[0]; i++) {
    if (structures[i].type != type) continue;
    for (size_t at = sizeof(VkBaseOutStructure); at < structures[i].size; at += sizeof(VkBool32)) {
      VkBool32* value = (VkBool32*)((char*)structure + at);
      if (!*value || is_allowed(name_of(type, at))) continue;
      if (!hide) return name_of(type, at);
      *value = VK_FALSE;
    }
  }
  return NULL;
}

const char* refused_feature(const VkDeviceCreateInfo* info) {
  const char* found = NULL;
  const VkBaseInStructure* each = info->pNext;
  for (; each && !found; each = each->pNext) found = first_hidden((void*)each, false);
  if (info->pEnabledFeatures && !found) {
    VkPhysicalDeviceFeatures2 core = {.sType = CORE, .features = *info->pEnabledFeatures};
    found = first_hidden(&core, false);
  }
  return found;
}

static void hostile_GetPhysicalDeviceFeatures2(VkPhysicalDevice physical,
                                               VkPhysicalDeviceFeatures2* features) {
  instance_of(physical)->GetPhysicalDeviceFeatures2(physical, features);
  for (VkBaseOutStructure* each = (VkBaseOutStructure*)features; each; each = each->pNext)
    first_hidden(each, true);
}

static void hostile_GetPhysicalDeviceFeatures(VkPhysicalDevice physical,
                                              VkPhysicalDeviceFeatures* features) {
  VkPhysicalDeviceFeatures2 core = {.sType = CORE};
  hostile_GetPhysicalDeviceFeatures2(physical, &core);
  *features = core.features;
}

/* No device can be given more than the driver really has. */
static uint64_t adapted(const char* name, int index, uint64_t real, bool least) {
  const struct limit* limit = find_limit(name);
  if (!limit) return real;
  uint64_t wanted = limit->values[index < limit->count ? index : 0];
  return (wanted > real) == least ? wanted : real;
}

void adapt_limits(VkPhysicalDeviceLimits* l) {
#define MOST(name) l->name = adapted(#name, 0, l->name, false);
#define LEAST(name) l->name = adapted(#name, 0, l->name, true);
  MOST(maxImageDimension1D) MOST(maxImageDimension2D) MOST(maxImageDimension3D)
  MOST(maxTexelBufferElements) MOST(maxUniformBufferRange) MOST(maxStorageBufferRange)
  MOST(maxPushConstantsSize) MOST(maxMemoryAllocationCount) MOST(maxBoundDescriptorSets)
  MOST(maxPerStageDescriptorSamplers) MOST(maxPerStageDescriptorUniformBuffers)
  MOST(maxPerStageDescriptorStorageBuffers) MOST(maxPerStageDescriptorSampledImages)
  MOST(maxPerStageDescriptorStorageImages) MOST(maxPerStageResources)
  MOST(maxDescriptorSetStorageBuffers) MOST(maxDescriptorSetSampledImages)
  MOST(maxDescriptorSetStorageImages) MOST(maxComputeSharedMemorySize)
  MOST(maxComputeWorkGroupInvocations)
  LEAST(bufferImageGranularity) LEAST(minTexelBufferOffsetAlignment)
  LEAST(minStorageBufferOffsetAlignment) LEAST(minUniformBufferOffsetAlignment)
  LEAST(nonCoherentAtomSize)
#define MOST_OF(name, i) l->name[i] = adapted(#name, i, l->name[i], false);
  MOST_OF(maxComputeWorkGroupCount, 0) MOST_OF(maxComputeWorkGroupSize, 0)
  MOST_OF(maxComputeWorkGroupCount, 1) MOST_OF(maxComputeWorkGroupSize, 1)
  MOST_OF(maxComputeWorkGroupCount, 2) MOST_OF(maxComputeWorkGroupSize, 2)
}

static void adapt_properties(VkPhysicalDeviceProperties* properties) {
  if (profile.api_version < properties->apiVersion) properties->apiVersion = profile.api_version;
  properties->vendorID = profile.vendor;
  properties->deviceID = profile.device;
  properties->deviceType = profile.type;
  strncpy(properties->deviceName, profile.name, sizeof properties->deviceName - 1);
  memset(properties->pipelineCacheUUID, 0x56, sizeof properties->pipelineCacheUUID);
  adapt_limits(&properties->limits);
}

/* What subgroups can do is a property, not a feature. */
static void adapt_subgroups(VkSubgroupFeatureFlags* operations) {
  *operations &= limit_or("subgroupSupportedOperations", *operations);
}

static void adapt_allocation(VkDeviceSize* most) {
  *most = adapted("maxMemoryAllocationSize", 0, *most, false);
}

static void adapt_driver(VkDriverId* id, char* name, char* text) {
  *id = profile.driver_id;
  strcpy(name, "hostile");
  strcpy(text, "a layer of the tests");
}

static void hostile_GetPhysicalDeviceProperties(VkPhysicalDevice physical,
                                                VkPhysicalDeviceProperties* properties) {
  instance_of(physical)->GetPhysicalDeviceProperties(physical, properties);
  adapt_properties(properties);
}

static void hostile_GetPhysicalDeviceProperties2(VkPhysicalDevice physical,
                                                 VkPhysicalDeviceProperties2* properties) {
  instance_of(physical)->GetPhysicalDeviceProperties2(physical, properties);
  adapt_properties(&properties->properties);
#define IN_CHAIN(structure) \
  in_chain(properties, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_##structure##_PROPERTIES)
  VkPhysicalDeviceDriverProperties* driver = IN_CHAIN(DRIVER);
  if (driver) adapt_driver(&driver->driverID, driver->driverName, driver->driverInfo);
  VkPhysicalDeviceVulkan12Properties* core = IN_CHAIN(VULKAN_1_2);
  if (core) adapt_driver(&core->driverID, core->driverName, core->driverInfo);
  /* Asked to keep NaN, llvmpipe computes other bits than unasked, with which they are compared. */
  VkPhysicalDeviceFloatControlsProperties* controls = IN_CHAIN(FLOAT_CONTROLS);
  if (controls)
    controls->shaderSignedZeroInfNanPreserveFloat16 =
        controls->shaderSignedZeroInfNanPreserveFloat32 = VK_FALSE;
  VkPhysicalDeviceMaintenance3Properties* maintained = IN_CHAIN(MAINTENANCE_3);
  if (maintained) adapt_allocation(&maintained->maxMemoryAllocationSize);
  VkPhysicalDeviceVulkan11Properties* all = IN_CHAIN(VULKAN_1_1);
  if (all) adapt_allocation(&all->maxMemoryAllocationSize);
  if (all) adapt_subgroups(&all->subgroupSupportedOperations);
  VkPhysicalDeviceSubgroupProperties* subgroups = IN_CHAIN(SUBGROUP);
  if (subgroups) adapt_subgroups(&subgroups->supportedOperations);
  VkPhysicalDeviceExternalMemoryHostPropertiesEXT* host =
      in_chain(properties, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_MEMORY_HOST_PROPERTIES_EXT);
  if (host)
    host->minImportedHostPointerAlignment = adapted(
        "minImportedHostPointerAlignment", 0, host->minImportedHostPointerAlignment, true);
}

static void hostile_GetPhysicalDeviceMemoryProperties(
    VkPhysicalDevice physical, VkPhysicalDeviceMemoryProperties* memory) {
  instance_of(physical)->GetPhysicalDeviceMemoryProperties(physical, memory);
  if (profile.memory.memoryTypeCount) *memory = profile.memory;
}

static void hostile_GetPhysicalDeviceMemoryProperties2(
    VkPhysicalDevice physical, VkPhysicalDeviceMemoryProperties2* memory) {
  hostile_GetPhysicalDeviceMemoryProperties(physical, &memory->memoryProperties);
}

static void hostile_GetPhysicalDeviceQueueFamilyProperties(
    VkPhysicalDevice physical, uint32_t* count, VkQueueFamilyProperties* families) {
  uint32_t one = 1, number = profile.family_count;
  VkQueueFamilyProperties real;
  instance_of(physical)->GetPhysicalDeviceQueueFamilyProperties(physical, &one, &real);
  real.queueCount = 1;
  real.timestampValidBits = limit_or("timestampValidBits", real.timestampValidBits);
  if (families && *count < number) number = *count;
  for (uint32_t i = 0; families && i < number; i++) {
    families[i] = real;
    families[i].queueFlags = profile.families[i];
  }
  *count = number;
}

static void hostile_GetPhysicalDeviceQueueFamilyProperties2(
    VkPhysicalDevice physical, uint32_t* count, VkQueueFamilyProperties2* families) {
  VkQueueFamilyProperties plain[MAX_FAMILIES];
  uint32_t number = MAX_FAMILIES;
  hostile_GetPhysicalDeviceQueueFamilyProperties(physical, &number, plain);
  if (families && *count < number) number = *count;
  for (uint32_t i = 0; families && i < number; i++) families[i].queueFamilyProperties = plain[i];
  *count = number;
}

static void adapt_format(VkFormat format, VkFormatProperties* properties) {
  for (int i = 0; i < profile.format_count; i++) {
    if (profile.formats[i].format != format) continue;
    properties->linearTilingFeatures &= profile.formats[i].optimal;
    properties->optimalTilingFeatures &= profile.formats[i].optimal;
    properties->bufferFeatures &= profile.formats[i].buffer;
  }
}

static void hostile_GetPhysicalDeviceFormatProperties(
    VkPhysicalDevice physical, VkFormat format, VkFormatProperties* properties) {
  instance_of(physical)->GetPhysicalDeviceFormatProperties(physical, format, properties);
  adapt_format(format, properties);
}

static void hostile_GetPhysicalDeviceFormatProperties2(
    VkPhysicalDevice physical, VkFormat format, VkFormatProperties2* properties) {
  instance_of(physical)->GetPhysicalDeviceFormatProperties2(physical, format, properties);
  adapt_format(format, &properties->formatProperties);
  VkFormatProperties3* wide = in_chain(properties, VK_STRUCTURE_TYPE_FORMAT_PROPERTIES_3);
  if (!wide) return;
  wide->linearTilingFeatures &= properties->formatProperties.linearTilingFeatures;
  wide->optimalTilingFeatures &= properties->formatProperties.optimalTilingFeatures;
  wide->bufferFeatures &= properties->formatProperties.bufferFeatures;
}

static uint32_t side(const char* name, uint32_t real) { return adapted(name, 0, real, false); }

static void adapt_extent(VkImageType type, VkExtent3D* most) {
  const char* name = type == VK_IMAGE_TYPE_3D   ? "maxImageDimension3D"
                     : type == VK_IMAGE_TYPE_2D ? "maxImageDimension2D"
                                                : "maxImageDimension1D";
  most->width = side(name, most->width);
  if (type != VK_IMAGE_TYPE_1D) most->height = side(name, most->height);
  if (type == VK_IMAGE_TYPE_3D) most->depth = side(name, most->depth);
}

static VkResult hostile_GetPhysicalDeviceImageFormatProperties(
    VkPhysicalDevice physical, VkFormat format, VkImageType type, VkImageTiling tiling,
    VkImageUsageFlags usage, VkImageCreateFlags flags, VkImageFormatProperties* properties) {
  VkResult result = instance_of(physical)->GetPhysicalDeviceImageFormatProperties(
      physical, format, type, tiling, usage, flags, properties);
  if (result == VK_SUCCESS) adapt_extent(type, &properties->maxExtent);
  return result;
}

static VkResult hostile_GetPhysicalDeviceImageFormatProperties2(
    VkPhysicalDevice physical, const VkPhysicalDeviceImageFormatInfo2* info,
    VkImageFormatProperties2* properties) {
  VkResult result = instance_of(physical)->GetPhysicalDeviceImageFormatProperties2(physical, info,
                                                                                   properties);
  if (result == VK_SUCCESS) adapt_extent(info->type, &properties->imageFormatProperties.maxExtent);
  return result;
}

static void hostile_GetPhysicalDeviceExternalBufferProperties(
    VkPhysicalDevice physical, const VkPhysicalDeviceExternalBufferInfo* info,
    VkExternalBufferProperties* properties) {
  instance_of(physical)->GetPhysicalDeviceExternalBufferProperties(physical, info, properties);
  if (profile.imports == IMPORTS_DENIED)
    properties->externalMemoryProperties = (VkExternalMemoryProperties){0};
}

static VkResult hostile_EnumerateDeviceExtensionProperties(
    VkPhysicalDevice physical, const char* layer, uint32_t* count,
    VkExtensionProperties* properties) {
  struct instance* instance = instance_of(physical);
  if (layer) {
    *count = 0;
    return VK_SUCCESS;
  }
  uint32_t number = 0, kept = 0;
  VkResult result = instance->EnumerateDeviceExtensionProperties(physical, NULL, &number, NULL);
  if (result != VK_SUCCESS) return result;
  VkExtensionProperties* real = calloc(number + 1, sizeof *real);
  result = instance->EnumerateDeviceExtensionProperties(physical, NULL, &number, real);
  for (uint32_t i = 0; i < number && result == VK_SUCCESS; i++) {
    if (!is_listed(profile.extensions, profile.extension_count, real[i].extensionName)) continue;
    if (properties && kept == *count) result = VK_INCOMPLETE;
    else if (properties) properties[kept++] = real[i];
    else kept++;
  }
  free(real);
  *count = kept;
  return result;
}

#define FUNCTIONS(X) \
  X(GetPhysicalDeviceFeatures) X(GetPhysicalDeviceFeatures2) \
  X(GetPhysicalDeviceProperties) X(GetPhysicalDeviceProperties2) \
  X(GetPhysicalDeviceMemoryProperties) X(GetPhysicalDeviceMemoryProperties2) \
  X(GetPhysicalDeviceQueueFamilyProperties) X(GetPhysicalDeviceQueueFamilyProperties2) \
  X(GetPhysicalDeviceFormatProperties) X(GetPhysicalDeviceFormatProperties2) \
  X(GetPhysicalDeviceImageFormatProperties) X(GetPhysicalDeviceImageFormatProperties2) \
  X(GetPhysicalDeviceExternalBufferProperties) X(EnumerateDeviceExtensionProperties)
FINDER(physical_function, FUNCTIONS)
