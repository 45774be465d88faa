"""Vulkan's C declarations, as far as vkrt uses them. Nothing here links against libvulkan."""

from libc.stdint cimport int32_t, uint32_t, uint64_t

cdef extern from * nogil:
    """
    #ifndef VK_NO_PROTOTYPES
    #define VK_NO_PROTOTYPES
    #endif
    #ifndef VK_DEFINE_NON_DISPATCHABLE_HANDLE
    #include <stdint.h>
    #define VK_DEFINE_NON_DISPATCHABLE_HANDLE(object) typedef uint64_t object;
    #endif
    #include <string.h>
    #include <vulkan/vulkan_core.h>
    #define VKRT_CLEAR_STRUCT(place, type) \\
        (memset(place, 0, sizeof *(place)), (place)->sType = (type))
    """
    # Handles: pointers, then numbers of 64 bits, which the header has as pointers by default where
    # those have as many.
    ctypedef void* VkInstance
    ctypedef void* VkPhysicalDevice
    ctypedef void* VkDevice
    ctypedef void* VkQueue
    ctypedef void* VkCommandBuffer
    ctypedef uint64_t VkBuffer
    ctypedef uint64_t VkBufferView
    ctypedef uint64_t VkImage
    ctypedef uint64_t VkImageView
    ctypedef uint64_t VkSampler
    ctypedef uint64_t VkShaderModule
    ctypedef uint64_t VkDescriptorSetLayout
    ctypedef uint64_t VkDescriptorPool
    ctypedef uint64_t VkDescriptorSet
    ctypedef uint64_t VkPipelineLayout
    ctypedef uint64_t VkPipelineCache
    ctypedef uint64_t VkPipeline
    ctypedef uint64_t VkCommandPool
    ctypedef uint64_t VkFence
    ctypedef uint64_t VkSemaphore
    ctypedef uint64_t VkDeviceMemory
    ctypedef uint64_t VkQueryPool
    ctypedef uint64_t VkDebugUtilsMessengerEXT
    # Of the latter
    const uint64_t VK_NULL_HANDLE

    ctypedef uint32_t VkBool32
    ctypedef uint32_t VkFlags
    ctypedef uint64_t VkDeviceSize

    ctypedef enum VkResult:
        VK_SUCCESS, VK_TIMEOUT, VK_ERROR_OUT_OF_HOST_MEMORY, VK_ERROR_OUT_OF_DEVICE_MEMORY
        VK_ERROR_DEVICE_LOST, VK_ERROR_INCOMPATIBLE_DRIVER, VK_ERROR_LAYER_NOT_PRESENT
        VK_ERROR_UNKNOWN, VK_ERROR_VALIDATION_FAILED_EXT

    # Enumerations that only pass through are plain ints here; C converts them.
    ctypedef int VkStructureType
    ctypedef int VkFormat
    ctypedef int VkDescriptorType
    ctypedef int VkImageLayout
    ctypedef int VkPipelineBindPoint
    ctypedef int VkPhysicalDeviceType
    ctypedef int VkDriverId
    ctypedef int VkDebugUtilsMessageSeverityFlagBitsEXT
    ctypedef int VkValidationFeatureEnableEXT

    enum:
        VK_ACCESS_HOST_READ_BIT, VK_ACCESS_HOST_WRITE_BIT, VK_ACCESS_SHADER_READ_BIT
        VK_ACCESS_SHADER_WRITE_BIT, VK_ACCESS_TRANSFER_READ_BIT, VK_ACCESS_TRANSFER_WRITE_BIT
        VK_API_VERSION_1_1, VK_API_VERSION_1_2, VK_API_VERSION_1_3
        VK_BUFFER_USAGE_STORAGE_BUFFER_BIT, VK_BUFFER_USAGE_TRANSFER_DST_BIT
        VK_BUFFER_USAGE_TRANSFER_SRC_BIT, VK_BUFFER_USAGE_UNIFORM_TEXEL_BUFFER_BIT
        VK_COMMAND_BUFFER_LEVEL_PRIMARY, VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT
        VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT
        VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT
        VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT
        VK_DEBUG_UTILS_MESSAGE_TYPE_GENERAL_BIT_EXT, VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT
        VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER
        VK_DESCRIPTOR_TYPE_STORAGE_IMAGE, VK_DESCRIPTOR_TYPE_UNIFORM_TEXEL_BUFFER
        VK_DRIVER_ID_GOOGLE_SWIFTSHADER, VK_DRIVER_ID_MESA_LLVMPIPE
        VK_EXTERNAL_MEMORY_FEATURE_IMPORTABLE_BIT
        VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT, VK_FILTER_NEAREST
        VK_FORMAT_R16G16B16A16_SFLOAT, VK_FORMAT_R16G16B16A16_UINT, VK_FORMAT_R32G32B32A32_SFLOAT
        VK_FORMAT_R32G32B32A32_SINT, VK_FORMAT_R8G8B8A8_SINT, VK_FORMAT_R8G8B8A8_UINT
        VK_IMAGE_ASPECT_COLOR_BIT, VK_IMAGE_LAYOUT_GENERAL, VK_IMAGE_LAYOUT_UNDEFINED
        VK_IMAGE_TILING_OPTIMAL, VK_IMAGE_TYPE_3D, VK_IMAGE_USAGE_SAMPLED_BIT
        VK_IMAGE_USAGE_STORAGE_BIT, VK_IMAGE_USAGE_TRANSFER_DST_BIT
        VK_IMAGE_USAGE_TRANSFER_SRC_BIT, VK_IMAGE_VIEW_TYPE_3D
        VK_INSTANCE_CREATE_ENUMERATE_PORTABILITY_BIT_KHR, VK_MEMORY_HEAP_DEVICE_LOCAL_BIT
        VK_MEMORY_PROPERTY_DEVICE_COHERENT_BIT_AMD, VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT
        VK_MEMORY_PROPERTY_DEVICE_UNCACHED_BIT_AMD, VK_MEMORY_PROPERTY_HOST_CACHED_BIT
        VK_MEMORY_PROPERTY_HOST_COHERENT_BIT, VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT
        VK_MEMORY_PROPERTY_LAZILY_ALLOCATED_BIT, VK_MEMORY_PROPERTY_PROTECTED_BIT
        VK_PHYSICAL_DEVICE_TYPE_CPU, VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU
        VK_PIPELINE_BIND_POINT_COMPUTE, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT
        VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT
        VK_PIPELINE_STAGE_HOST_BIT, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_QUERY_RESULT_64_BIT
        VK_QUERY_TYPE_TIMESTAMP, VK_QUEUE_COMPUTE_BIT, VK_QUEUE_FAMILY_IGNORED
        VK_QUEUE_GRAPHICS_BIT, VK_QUEUE_TRANSFER_BIT, VK_SAMPLER_ADDRESS_MODE_CLAMP_TO_EDGE
        VK_SAMPLER_MIPMAP_MODE_NEAREST, VK_SAMPLE_COUNT_1_BIT, VK_SEMAPHORE_TYPE_TIMELINE
        VK_SHADER_STAGE_COMPUTE_BIT, VK_SHARING_MODE_CONCURRENT, VK_SHARING_MODE_EXCLUSIVE
        VK_STRUCTURE_TYPE_APPLICATION_INFO, VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO
        VK_STRUCTURE_TYPE_BUFFER_VIEW_CREATE_INFO, VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO
        VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO, VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO
        VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO
        VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT
        VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO
        VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO
        VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO, VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO
        VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO, VK_STRUCTURE_TYPE_EXTERNAL_BUFFER_PROPERTIES
        VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO, VK_STRUCTURE_TYPE_FENCE_CREATE_INFO
        VK_STRUCTURE_TYPE_IMAGE_CREATE_INFO, VK_STRUCTURE_TYPE_IMAGE_MEMORY_BARRIER
        VK_STRUCTURE_TYPE_IMAGE_VIEW_CREATE_INFO
        VK_STRUCTURE_TYPE_IMPORT_MEMORY_HOST_POINTER_INFO_EXT
        VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO, VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO
        VK_STRUCTURE_TYPE_MEMORY_BARRIER, VK_STRUCTURE_TYPE_MEMORY_HOST_POINTER_PROPERTIES_EXT
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_BUFFER_INFO
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_MEMORY_HOST_PROPERTIES_EXT
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FLOAT_CONTROLS_PROPERTIES
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_PROPERTIES
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES
        VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO, VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO
        VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO
        VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO, VK_STRUCTURE_TYPE_SAMPLER_CREATE_INFO
        VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, VK_STRUCTURE_TYPE_SEMAPHORE_SIGNAL_INFO
        VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO, VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO
        VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO, VK_STRUCTURE_TYPE_SUBMIT_INFO
        VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO, VK_STRUCTURE_TYPE_VALIDATION_FEATURES_EXT
        VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET
        VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT

    uint32_t VK_VERSION_MAJOR(uint32_t version)
    uint32_t VK_VERSION_MINOR(uint32_t version)
    uint32_t VK_VERSION_PATCH(uint32_t version)

    # Fills a struct with zeros, but for its `sType`.
    void clear_struct "VKRT_CLEAR_STRUCT"(void* place, VkStructureType type)
    # What every struct with an `sType` begins with
    ctypedef struct VkBaseOutStructure:
        VkStructureType sType
        VkBaseOutStructure* pNext

    # Instance
    ctypedef struct VkApplicationInfo:
        const char* pApplicationName
        const char* pEngineName
        uint32_t apiVersion
    ctypedef struct VkInstanceCreateInfo:
        const void* pNext
        VkFlags flags
        const VkApplicationInfo* pApplicationInfo
        uint32_t enabledLayerCount
        const char* const* ppEnabledLayerNames
        uint32_t enabledExtensionCount
        const char* const* ppEnabledExtensionNames
    ctypedef struct VkExtensionProperties:
        char* extensionName
    ctypedef struct VkDebugUtilsMessengerCallbackDataEXT:
        const char* pMessageIdName
        const char* pMessage
    ctypedef VkBool32 (*PFN_vkDebugUtilsMessengerCallbackEXT)(
        VkDebugUtilsMessageSeverityFlagBitsEXT severity, VkFlags types,
        const VkDebugUtilsMessengerCallbackDataEXT* data, void* user) nogil
    ctypedef struct VkDebugUtilsMessengerCreateInfoEXT:
        VkFlags messageSeverity, messageType
        PFN_vkDebugUtilsMessengerCallbackEXT pfnUserCallback
    ctypedef struct VkValidationFeaturesEXT:
        const void* pNext
        uint32_t enabledValidationFeatureCount
        const VkValidationFeatureEnableEXT* pEnabledValidationFeatures

    # Physical devices
    # All of them, in this order, are limits of `vkrt.vk.info.DeviceInfo`.
    ctypedef struct VkPhysicalDeviceLimits:
        uint32_t maxStorageBufferRange, maxTexelBufferElements
        uint32_t maxImageDimension1D, maxImageDimension3D, maxBoundDescriptorSets
        uint32_t maxPerStageDescriptorStorageBuffers, maxPerStageDescriptorSampledImages
        uint32_t maxPerStageDescriptorStorageImages, maxComputeSharedMemorySize
        uint32_t[3] maxComputeWorkGroupCount
        uint32_t maxComputeWorkGroupInvocations
        uint32_t[3] maxComputeWorkGroupSize
        uint32_t maxPushConstantsSize
        VkDeviceSize minStorageBufferOffsetAlignment, minTexelBufferOffsetAlignment
        VkDeviceSize bufferImageGranularity, nonCoherentAtomSize
        uint32_t maxMemoryAllocationCount
        float timestampPeriod
    ctypedef struct VkPhysicalDeviceProperties:
        uint32_t apiVersion, driverVersion, vendorID, deviceID
        VkPhysicalDeviceType deviceType
        char* deviceName
        unsigned char* pipelineCacheUUID
        VkPhysicalDeviceLimits limits
    ctypedef struct VkPhysicalDeviceProperties2:
        void* pNext
        VkPhysicalDeviceProperties properties
    ctypedef struct VkPhysicalDeviceDriverProperties:
        VkDriverId driverID
        char* driverName
        char* driverInfo
    ctypedef struct VkPhysicalDeviceSubgroupProperties:
        uint32_t subgroupSize
        VkFlags supportedStages, supportedOperations
    ctypedef struct VkPhysicalDeviceMaintenance3Properties:
        VkDeviceSize maxMemoryAllocationSize
    ctypedef struct VkPhysicalDeviceExternalMemoryHostPropertiesEXT:
        VkDeviceSize minImportedHostPointerAlignment
    ctypedef struct VkMemoryType:
        VkFlags propertyFlags
        uint32_t heapIndex
    ctypedef struct VkMemoryHeap:
        VkDeviceSize size
        VkFlags flags
    ctypedef struct VkPhysicalDeviceMemoryProperties:
        uint32_t memoryTypeCount
        VkMemoryType* memoryTypes
        uint32_t memoryHeapCount
        VkMemoryHeap* memoryHeaps
    ctypedef struct VkQueueFamilyProperties:
        VkFlags queueFlags
        uint32_t queueCount, timestampValidBits
    ctypedef struct VkPhysicalDeviceFeatures2:
        void* pNext
    ctypedef struct VkPhysicalDeviceShaderIntegerDotProductProperties:
        VkBool32 integerDotProduct4x8BitPackedSignedAccelerated
    ctypedef struct VkPhysicalDeviceFloatControlsProperties:
        VkBool32 shaderSignedZeroInfNanPreserveFloat16, shaderSignedZeroInfNanPreserveFloat32

    # Device
    ctypedef struct VkDeviceQueueCreateInfo:
        uint32_t queueFamilyIndex, queueCount
        const float* pQueuePriorities
    ctypedef struct VkDeviceCreateInfo:
        const void* pNext
        uint32_t queueCreateInfoCount
        const VkDeviceQueueCreateInfo* pQueueCreateInfos
        uint32_t enabledExtensionCount
        const char* const* ppEnabledExtensionNames

    # Buffers and images
    ctypedef struct VkMemoryRequirements:
        VkDeviceSize size, alignment
        uint32_t memoryTypeBits
    ctypedef struct VkBufferCreateInfo:
        const void* pNext
        VkFlags flags
        VkDeviceSize size
        VkFlags usage
        int sharingMode
        uint32_t queueFamilyIndexCount
        const uint32_t* pQueueFamilyIndices
    ctypedef struct VkExternalMemoryBufferCreateInfo:
        VkFlags handleTypes
    ctypedef struct VkMemoryAllocateInfo:
        const void* pNext
        VkDeviceSize allocationSize
        uint32_t memoryTypeIndex
    ctypedef struct VkPhysicalDeviceExternalBufferInfo:
        VkFlags flags, usage, handleType
    ctypedef struct VkExternalMemoryProperties:
        VkFlags externalMemoryFeatures, compatibleHandleTypes
    ctypedef struct VkExternalBufferProperties:
        VkExternalMemoryProperties externalMemoryProperties
    ctypedef struct VkImportMemoryHostPointerInfoEXT:
        VkFlags handleType
        void* pHostPointer
    ctypedef struct VkMemoryHostPointerPropertiesEXT:
        uint32_t memoryTypeBits
    ctypedef struct VkBufferViewCreateInfo:
        VkBuffer buffer
        VkFormat format
        VkDeviceSize offset, range
    ctypedef struct VkExtent3D:
        uint32_t width, height, depth
    ctypedef struct VkImageCreateInfo:
        VkFlags flags
        int imageType
        VkFormat format
        VkExtent3D extent
        uint32_t mipLevels, arrayLayers
        int samples, tiling
        VkFlags usage
        int sharingMode
        VkImageLayout initialLayout
    ctypedef struct VkImageSubresourceRange:
        VkFlags aspectMask
        uint32_t levelCount, layerCount
    ctypedef struct VkImageViewCreateInfo:
        VkImage image
        int viewType
        VkFormat format
        VkImageSubresourceRange subresourceRange

    # Pipelines
    ctypedef struct VkSamplerCreateInfo:
        int magFilter, minFilter, mipmapMode, addressModeU, addressModeV, addressModeW
    ctypedef struct VkShaderModuleCreateInfo:
        size_t codeSize
        const uint32_t* pCode
    ctypedef struct VkDescriptorSetLayoutBinding:
        uint32_t binding
        VkDescriptorType descriptorType
        uint32_t descriptorCount
        VkFlags stageFlags
    ctypedef struct VkDescriptorSetLayoutCreateInfo:
        uint32_t bindingCount
        const VkDescriptorSetLayoutBinding* pBindings
    ctypedef struct VkPushConstantRange:
        VkFlags stageFlags
        uint32_t offset, size
    ctypedef struct VkPipelineLayoutCreateInfo:
        uint32_t setLayoutCount
        const VkDescriptorSetLayout* pSetLayouts
        uint32_t pushConstantRangeCount
        const VkPushConstantRange* pPushConstantRanges
    ctypedef struct VkSpecializationMapEntry:
        uint32_t constantID, offset
        size_t size
    ctypedef struct VkSpecializationInfo:
        uint32_t mapEntryCount
        const VkSpecializationMapEntry* pMapEntries
        size_t dataSize
        const void* pData
    ctypedef struct VkPipelineShaderStageCreateInfo:
        int stage
        VkShaderModule module
        const char* pName
        const VkSpecializationInfo* pSpecializationInfo
    ctypedef struct VkPipelineCacheCreateInfo:
        size_t initialDataSize
        const void* pInitialData
    ctypedef struct VkComputePipelineCreateInfo:
        VkPipelineShaderStageCreateInfo stage
        VkPipelineLayout layout
        int32_t basePipelineIndex
    ctypedef struct VkDescriptorPoolSize:
        VkDescriptorType type
        uint32_t descriptorCount
    ctypedef struct VkDescriptorPoolCreateInfo:
        uint32_t maxSets, poolSizeCount
        const VkDescriptorPoolSize* pPoolSizes
    ctypedef struct VkDescriptorSetAllocateInfo:
        VkDescriptorPool descriptorPool
        uint32_t descriptorSetCount
        const VkDescriptorSetLayout* pSetLayouts
    ctypedef struct VkDescriptorImageInfo:
        VkSampler sampler
        VkImageView imageView
        VkImageLayout imageLayout
    ctypedef struct VkDescriptorBufferInfo:
        VkBuffer buffer
        VkDeviceSize offset, range
    ctypedef struct VkWriteDescriptorSet:
        VkDescriptorSet dstSet
        uint32_t dstBinding, descriptorCount
        VkDescriptorType descriptorType
        const VkDescriptorImageInfo* pImageInfo
        const VkDescriptorBufferInfo* pBufferInfo
        const VkBufferView* pTexelBufferView

    # Commands
    ctypedef struct VkCommandPoolCreateInfo:
        VkFlags flags
        uint32_t queueFamilyIndex
    ctypedef struct VkCommandBufferAllocateInfo:
        VkCommandPool commandPool
        int level
        uint32_t commandBufferCount
    ctypedef struct VkCommandBufferBeginInfo:
        VkFlags flags
    ctypedef struct VkMemoryBarrier:
        VkFlags srcAccessMask, dstAccessMask
    ctypedef struct VkImageMemoryBarrier:
        VkFlags srcAccessMask, dstAccessMask
        VkImageLayout oldLayout, newLayout
        uint32_t srcQueueFamilyIndex, dstQueueFamilyIndex
        VkImage image
        VkImageSubresourceRange subresourceRange
    ctypedef struct VkBufferCopy:
        VkDeviceSize srcOffset, dstOffset, size
    ctypedef struct VkSubmitInfo:
        const void* pNext
        uint32_t waitSemaphoreCount
        const VkSemaphore* pWaitSemaphores
        const VkFlags* pWaitDstStageMask
        uint32_t commandBufferCount
        const VkCommandBuffer* pCommandBuffers
        uint32_t signalSemaphoreCount
        const VkSemaphore* pSignalSemaphores
    ctypedef struct VkSemaphoreTypeCreateInfo:
        int semaphoreType
    ctypedef struct VkSemaphoreCreateInfo:
        const void* pNext
        VkFlags flags
    ctypedef struct VkSemaphoreWaitInfo:
        VkFlags flags
        uint32_t semaphoreCount
        const VkSemaphore* pSemaphores
        const uint64_t* pValues
    ctypedef struct VkSemaphoreSignalInfo:
        VkSemaphore semaphore
        uint64_t value
    ctypedef struct VkTimelineSemaphoreSubmitInfo:
        uint32_t waitSemaphoreValueCount
        const uint64_t* pWaitSemaphoreValues
        uint32_t signalSemaphoreValueCount
        const uint64_t* pSignalSemaphoreValues
    ctypedef struct VkFenceCreateInfo:
        VkFlags flags
    ctypedef struct VkQueryPoolCreateInfo:
        int queryType
        uint32_t queryCount

    # Functions, by the pointer types of the C header
    ctypedef void (*PFN_vkVoidFunction)() nogil
    ctypedef PFN_vkVoidFunction (*PFN_vkGetInstanceProcAddr)(VkInstance, const char*) nogil
    ctypedef PFN_vkVoidFunction (*PFN_vkGetDeviceProcAddr)(VkDevice, const char*) nogil
    ctypedef VkResult (*PFN_vkEnumerateInstanceVersion)(uint32_t*) nogil
    ctypedef VkResult (*PFN_vkEnumerateInstanceExtensionProperties)(
        const char*, uint32_t*, VkExtensionProperties*) nogil
    ctypedef VkResult (*PFN_vkCreateInstance)(
        const VkInstanceCreateInfo*, const void* allocation, VkInstance*) nogil
