"""Tables of Vulkan functions: one for an instance, one for a device.

Which functions they have is said once, in the lists of macros; their types are those of the C
header.
"""

from libc.stdint cimport uint64_t

from vkrt.core.error cimport Error
from vkrt.core.live cimport Kind
from vkrt.core.vulkan cimport *

cdef extern from * nogil:
    """
    #define VKRT_INSTANCE_REQUIRED(X) \\
        X(vkGetDeviceProcAddr) X(vkDestroyInstance) X(vkEnumeratePhysicalDevices) \\
        X(vkGetPhysicalDeviceProperties) X(vkGetPhysicalDeviceProperties2) \\
        X(vkGetPhysicalDeviceFeatures2) X(vkGetPhysicalDeviceMemoryProperties) \\
        X(vkGetPhysicalDeviceQueueFamilyProperties) X(vkEnumerateDeviceExtensionProperties) \\
        X(vkGetPhysicalDeviceExternalBufferProperties) X(vkCreateDevice)
    /* NULL unless VK_EXT_debug_utils is enabled */
    #define VKRT_INSTANCE_OPTIONAL(X) \\
        X(vkCreateDebugUtilsMessengerEXT) X(vkDestroyDebugUtilsMessengerEXT)
    /* By `Kind`, from BUFFER on: vkCreateBuffer and vkDestroyBuffer, .. */
    #define VKRT_CHILDREN(X) \\
        X(Buffer) X(BufferView) X(Image) X(ImageView) X(ShaderModule) X(DescriptorSetLayout) \\
        X(DescriptorPool) X(CommandPool) X(Fence) X(QueryPool) X(Semaphore) X(PipelineCache) \\
        X(Sampler)
    #define VKRT_DEVICE_OTHERS(X) \\
        X(vkDestroyDevice) X(vkGetDeviceQueue) X(vkDeviceWaitIdle) X(vkQueueSubmit) \\
        X(vkGetBufferMemoryRequirements) X(vkGetImageMemoryRequirements) \\
        X(vkCreatePipelineLayout) X(vkDestroyPipelineLayout) X(vkGetPipelineCacheData) \\
        X(vkCreateComputePipelines) X(vkDestroyPipeline) X(vkAllocateDescriptorSets) \\
        X(vkUpdateDescriptorSets) X(vkAllocateCommandBuffers) X(vkFreeCommandBuffers) \\
        X(vkBeginCommandBuffer) X(vkEndCommandBuffer) X(vkCmdBindPipeline) \\
        X(vkCmdBindDescriptorSets) X(vkCmdPushConstants) X(vkCmdDispatch) \\
        X(vkCmdPipelineBarrier) X(vkCmdCopyBuffer) X(vkCmdFillBuffer) X(vkCmdUpdateBuffer) \\
        X(vkAllocateMemory) X(vkFreeMemory) X(vkBindBufferMemory) X(vkResetFences) \\
        X(vkWaitForFences) X(vkCmdResetQueryPool) X(vkCmdWriteTimestamp) X(vkGetQueryPoolResults)
    /* NULL without timeline semaphores, VK_EXT_external_memory_host */
    #define VKRT_DEVICE_OPTIONAL(X) \\
        X(vkWaitSemaphores) X(vkSignalSemaphore) X(vkGetMemoryHostPointerPropertiesEXT)

    #define VKRT_ONE(name) + 1
    typedef VkResult (VKAPI_PTR *VkrtCreate)(VkDevice, const void*, const VkAllocationCallbacks*,
                                             uint64_t*);
    typedef void (VKAPI_PTR *VkrtDestroy)(VkDevice, uint64_t, const VkAllocationCallbacks*);
    #define VKRT_MEMBER(name) PFN_##name name;
    typedef struct {
        PFN_vkGetInstanceProcAddr vkGetInstanceProcAddr;
        VKRT_INSTANCE_REQUIRED(VKRT_MEMBER)
        VKRT_INSTANCE_OPTIONAL(VKRT_MEMBER)
    } VkrtInstanceTable;
    typedef struct {
        VkrtCreate create[VKRT_CHILDREN(VKRT_ONE)];
        VkrtDestroy destroy[VKRT_CHILDREN(VKRT_ONE)];
        VKRT_DEVICE_OTHERS(VKRT_MEMBER)
        VKRT_DEVICE_OPTIONAL(VKRT_MEMBER)
    } VkrtDeviceTable;
    """
    ctypedef struct InstanceTable "VkrtInstanceTable":
        PFN_vkGetInstanceProcAddr vkGetInstanceProcAddr
        PFN_vkGetDeviceProcAddr vkGetDeviceProcAddr
        void (*vkDestroyInstance)(VkInstance, const void*) nogil
        VkResult (*vkEnumeratePhysicalDevices)(VkInstance, uint32_t*, VkPhysicalDevice*) nogil
        void (*vkGetPhysicalDeviceProperties)(VkPhysicalDevice, VkPhysicalDeviceProperties*) nogil
        void (*vkGetPhysicalDeviceProperties2)(VkPhysicalDevice, VkPhysicalDeviceProperties2*) nogil
        void (*vkGetPhysicalDeviceFeatures2)(VkPhysicalDevice, VkPhysicalDeviceFeatures2*) nogil
        void (*vkGetPhysicalDeviceMemoryProperties)(
            VkPhysicalDevice, VkPhysicalDeviceMemoryProperties*) nogil
        void (*vkGetPhysicalDeviceQueueFamilyProperties)(
            VkPhysicalDevice, uint32_t*, VkQueueFamilyProperties*) nogil
        VkResult (*vkEnumerateDeviceExtensionProperties)(
            VkPhysicalDevice, const char*, uint32_t*, VkExtensionProperties*) nogil
        void (*vkGetPhysicalDeviceExternalBufferProperties)(
            VkPhysicalDevice, const VkPhysicalDeviceExternalBufferInfo*,
            VkExternalBufferProperties*) nogil
        VkResult (*vkCreateDevice)(
            VkPhysicalDevice, const VkDeviceCreateInfo*, const void*, VkDevice*) nogil
        VkResult (*vkCreateDebugUtilsMessengerEXT)(
            VkInstance, const VkDebugUtilsMessengerCreateInfoEXT*, const void*,
            VkDebugUtilsMessengerEXT*) nogil
        void (*vkDestroyDebugUtilsMessengerEXT)(
            VkInstance, VkDebugUtilsMessengerEXT, const void*) nogil
    ctypedef VkResult (*Create "VkrtCreate")(
        VkDevice, const void* info, const void* allocation, uint64_t* handle) nogil
    ctypedef void (*Destroy "VkrtDestroy")(VkDevice, uint64_t, const void*) nogil
    ctypedef struct DeviceTable "VkrtDeviceTable":
        # By `Kind`, from BUFFER on
        Create* create
        Destroy* destroy
        void (*vkDestroyDevice)(VkDevice, const void*) nogil
        void (*vkGetDeviceQueue)(VkDevice, uint32_t, uint32_t, VkQueue*) nogil
        VkResult (*vkDeviceWaitIdle)(VkDevice) nogil
        VkResult (*vkQueueSubmit)(VkQueue, uint32_t, const VkSubmitInfo*, VkFence) nogil
        void (*vkGetBufferMemoryRequirements)(VkDevice, VkBuffer, VkMemoryRequirements*) nogil
        void (*vkGetImageMemoryRequirements)(VkDevice, VkImage, VkMemoryRequirements*) nogil
        VkResult (*vkCreatePipelineLayout)(
            VkDevice, const VkPipelineLayoutCreateInfo*, const void*, VkPipelineLayout*) nogil
        void (*vkDestroyPipelineLayout)(VkDevice, VkPipelineLayout, const void*) nogil
        VkResult (*vkGetPipelineCacheData)(VkDevice, VkPipelineCache, size_t*, void*) nogil
        VkResult (*vkCreateComputePipelines)(
            VkDevice, VkPipelineCache, uint32_t, const VkComputePipelineCreateInfo*, const void*,
            VkPipeline*) nogil
        void (*vkDestroyPipeline)(VkDevice, VkPipeline, const void*) nogil
        VkResult (*vkAllocateDescriptorSets)(
            VkDevice, const VkDescriptorSetAllocateInfo*, VkDescriptorSet*) nogil
        void (*vkUpdateDescriptorSets)(
            VkDevice, uint32_t, const VkWriteDescriptorSet*, uint32_t, const void*) nogil
        VkResult (*vkAllocateCommandBuffers)(
            VkDevice, const VkCommandBufferAllocateInfo*, VkCommandBuffer*) nogil
        void (*vkFreeCommandBuffers)(
            VkDevice, VkCommandPool, uint32_t, const VkCommandBuffer*) nogil
        VkResult (*vkBeginCommandBuffer)(VkCommandBuffer, const VkCommandBufferBeginInfo*) nogil
        VkResult (*vkEndCommandBuffer)(VkCommandBuffer) nogil
        void (*vkCmdBindPipeline)(VkCommandBuffer, VkPipelineBindPoint, VkPipeline) nogil
        void (*vkCmdBindDescriptorSets)(
            VkCommandBuffer, VkPipelineBindPoint, VkPipelineLayout, uint32_t, uint32_t,
            const VkDescriptorSet*, uint32_t, const uint32_t*) nogil
        void (*vkCmdPushConstants)(
            VkCommandBuffer, VkPipelineLayout, VkFlags, uint32_t, uint32_t, const void*) nogil
        void (*vkCmdDispatch)(VkCommandBuffer, uint32_t, uint32_t, uint32_t) nogil
        void (*vkCmdPipelineBarrier)(
            VkCommandBuffer, VkFlags, VkFlags, VkFlags, uint32_t, const VkMemoryBarrier*, uint32_t,
            const void*, uint32_t, const VkImageMemoryBarrier*) nogil
        void (*vkCmdCopyBuffer)(
            VkCommandBuffer, VkBuffer, VkBuffer, uint32_t, const VkBufferCopy*) nogil
        void (*vkCmdUpdateBuffer)(
            VkCommandBuffer, VkBuffer, VkDeviceSize, VkDeviceSize, const void*) nogil
        void (*vkCmdFillBuffer)(
            VkCommandBuffer, VkBuffer, VkDeviceSize, VkDeviceSize, uint32_t) nogil
        VkResult (*vkAllocateMemory)(
            VkDevice, const VkMemoryAllocateInfo*, const void*, VkDeviceMemory*) nogil
        void (*vkFreeMemory)(VkDevice, VkDeviceMemory, const void*) nogil
        VkResult (*vkBindBufferMemory)(VkDevice, VkBuffer, VkDeviceMemory, VkDeviceSize) nogil
        VkResult (*vkWaitSemaphores)(VkDevice, const VkSemaphoreWaitInfo*, uint64_t) nogil
        VkResult (*vkSignalSemaphore)(VkDevice, const VkSemaphoreSignalInfo*) nogil
        VkResult (*vkGetMemoryHostPointerPropertiesEXT)(
            VkDevice, VkFlags, const void*, VkMemoryHostPointerPropertiesEXT*) nogil
        VkResult (*vkResetFences)(VkDevice, uint32_t, const VkFence*) nogil
        VkResult (*vkWaitForFences)(VkDevice, uint32_t, const VkFence*, VkBool32, uint64_t) nogil
        void (*vkCmdResetQueryPool)(VkCommandBuffer, VkQueryPool, uint32_t, uint32_t) nogil
        void (*vkCmdWriteTimestamp)(VkCommandBuffer, int, VkQueryPool, uint32_t) nogil
        VkResult (*vkGetQueryPoolResults)(
            VkDevice, VkQueryPool, uint32_t, uint32_t, size_t, void*, VkDeviceSize, VkFlags) nogil

cdef extern nogil:
    int fill_instance_table "vkrt_fill_instance_table"(
        InstanceTable* table, PFN_vkGetInstanceProcAddr lookup, VkInstance instance, Error* error)
    int fill_device_table "vkrt_fill_device_table"(
        DeviceTable* table, PFN_vkGetDeviceProcAddr lookup, VkDevice device, Error* error)
    # The name of the function that creates objects of a kind
    const char* create_name "vkrt_create_name"(Kind kind)
