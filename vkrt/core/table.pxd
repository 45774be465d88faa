# cython: language_level=3
"""Tables of Vulkan functions: one for an instance, one for a device.

Which functions they have is said once, in the lists of macros; their types are those of the C
header.
"""

from vkrt.core.error cimport Error
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
    #define VKRT_DEVICE_REQUIRED(X) \\
        X(vkDestroyDevice) X(vkGetDeviceQueue) X(vkDeviceWaitIdle) X(vkQueueSubmit) \\
        X(vkCreateBuffer) X(vkDestroyBuffer) X(vkGetBufferMemoryRequirements) \\
        X(vkCreateBufferView) X(vkDestroyBufferView) X(vkCreateImage) X(vkDestroyImage) \\
        X(vkGetImageMemoryRequirements) X(vkCreateImageView) X(vkDestroyImageView) \\
        X(vkCreateSampler) X(vkDestroySampler) X(vkCreateShaderModule) \\
        X(vkDestroyShaderModule) X(vkCreateDescriptorSetLayout) \\
        X(vkDestroyDescriptorSetLayout) X(vkCreatePipelineLayout) X(vkDestroyPipelineLayout) \\
        X(vkCreatePipelineCache) X(vkDestroyPipelineCache) X(vkGetPipelineCacheData) \\
        X(vkCreateComputePipelines) X(vkDestroyPipeline) X(vkCreateDescriptorPool) \\
        X(vkDestroyDescriptorPool) X(vkAllocateDescriptorSets) X(vkUpdateDescriptorSets) \\
        X(vkCreateCommandPool) X(vkDestroyCommandPool) X(vkAllocateCommandBuffers) \\
        X(vkFreeCommandBuffers) X(vkBeginCommandBuffer) X(vkEndCommandBuffer) \\
        X(vkCmdBindPipeline) X(vkCmdBindDescriptorSets) X(vkCmdPushConstants) \\
        X(vkCmdDispatch) X(vkCmdPipelineBarrier) X(vkCmdCopyBuffer) X(vkCmdFillBuffer) \\
        X(vkCmdUpdateBuffer) \\
        X(vkAllocateMemory) X(vkFreeMemory) X(vkBindBufferMemory) X(vkCreateSemaphore) \\
        X(vkDestroySemaphore) X(vkCreateFence) X(vkDestroyFence) X(vkResetFences) \\
        X(vkWaitForFences) X(vkCreateQueryPool) X(vkDestroyQueryPool) X(vkCmdResetQueryPool) \\
        X(vkCmdWriteTimestamp) X(vkGetQueryPoolResults)
    /* NULL without timeline semaphores, VK_EXT_external_memory_host */
    #define VKRT_DEVICE_OPTIONAL(X) \\
        X(vkWaitSemaphores) X(vkSignalSemaphore) X(vkGetMemoryHostPointerPropertiesEXT)

    #define VKRT_MEMBER(name) PFN_##name name;
    typedef struct {
        PFN_vkGetInstanceProcAddr vkGetInstanceProcAddr;
        VKRT_INSTANCE_REQUIRED(VKRT_MEMBER)
        VKRT_INSTANCE_OPTIONAL(VKRT_MEMBER)
    } VkrtInstanceTable;
    typedef struct {
        VKRT_DEVICE_REQUIRED(VKRT_MEMBER)
        VKRT_DEVICE_OPTIONAL(VKRT_MEMBER)
    } VkrtDeviceTable;
    """
    ctypedef struct InstanceTable "VkrtInstanceTable":
        PFN_vkGetInstanceProcAddr vkGetInstanceProcAddr
        PFN_vkGetDeviceProcAddr vkGetDeviceProcAddr
        void (*vkDestroyInstance)(VkInstance, const VkAllocationCallbacks*) noexcept nogil
        VkResult (*vkEnumeratePhysicalDevices)(
            VkInstance, uint32_t*, VkPhysicalDevice*) noexcept nogil
        void (*vkGetPhysicalDeviceProperties)(
            VkPhysicalDevice, VkPhysicalDeviceProperties*) noexcept nogil
        void (*vkGetPhysicalDeviceProperties2)(
            VkPhysicalDevice, VkPhysicalDeviceProperties2*) noexcept nogil
        void (*vkGetPhysicalDeviceFeatures2)(
            VkPhysicalDevice, VkPhysicalDeviceFeatures2*) noexcept nogil
        void (*vkGetPhysicalDeviceMemoryProperties)(
            VkPhysicalDevice, VkPhysicalDeviceMemoryProperties*) noexcept nogil
        void (*vkGetPhysicalDeviceQueueFamilyProperties)(
            VkPhysicalDevice, uint32_t*, VkQueueFamilyProperties*) noexcept nogil
        VkResult (*vkEnumerateDeviceExtensionProperties)(
            VkPhysicalDevice, const char*, uint32_t*, VkExtensionProperties*) noexcept nogil
        void (*vkGetPhysicalDeviceExternalBufferProperties)(
            VkPhysicalDevice, const VkPhysicalDeviceExternalBufferInfo*,
            VkExternalBufferProperties*) noexcept nogil
        VkResult (*vkCreateDevice)(
            VkPhysicalDevice, const VkDeviceCreateInfo*, const VkAllocationCallbacks*,
            VkDevice*) noexcept nogil
        VkResult (*vkCreateDebugUtilsMessengerEXT)(
            VkInstance, const VkDebugUtilsMessengerCreateInfoEXT*, const VkAllocationCallbacks*,
            VkDebugUtilsMessengerEXT*) noexcept nogil
        void (*vkDestroyDebugUtilsMessengerEXT)(
            VkInstance, VkDebugUtilsMessengerEXT, const VkAllocationCallbacks*) noexcept nogil
    ctypedef struct DeviceTable "VkrtDeviceTable":
        void (*vkDestroyDevice)(VkDevice, const VkAllocationCallbacks*) noexcept nogil
        void (*vkGetDeviceQueue)(VkDevice, uint32_t, uint32_t, VkQueue*) noexcept nogil
        VkResult (*vkDeviceWaitIdle)(VkDevice) noexcept nogil
        VkResult (*vkQueueSubmit)(VkQueue, uint32_t, const VkSubmitInfo*, VkFence) noexcept nogil
        VkResult (*vkCreateBuffer)(
            VkDevice, const VkBufferCreateInfo*, const VkAllocationCallbacks*,
            VkBuffer*) noexcept nogil
        void (*vkDestroyBuffer)(VkDevice, VkBuffer, const VkAllocationCallbacks*) noexcept nogil
        void (*vkGetBufferMemoryRequirements)(
            VkDevice, VkBuffer, VkMemoryRequirements*) noexcept nogil
        VkResult (*vkCreateBufferView)(
            VkDevice, const VkBufferViewCreateInfo*, const VkAllocationCallbacks*,
            VkBufferView*) noexcept nogil
        void (*vkDestroyBufferView)(
            VkDevice, VkBufferView, const VkAllocationCallbacks*) noexcept nogil
        VkResult (*vkCreateImage)(
            VkDevice, const VkImageCreateInfo*, const VkAllocationCallbacks*,
            VkImage*) noexcept nogil
        void (*vkDestroyImage)(VkDevice, VkImage, const VkAllocationCallbacks*) noexcept nogil
        void (*vkGetImageMemoryRequirements)(
            VkDevice, VkImage, VkMemoryRequirements*) noexcept nogil
        VkResult (*vkCreateImageView)(
            VkDevice, const VkImageViewCreateInfo*, const VkAllocationCallbacks*,
            VkImageView*) noexcept nogil
        void (*vkDestroyImageView)(
            VkDevice, VkImageView, const VkAllocationCallbacks*) noexcept nogil
        VkResult (*vkCreateSampler)(
            VkDevice, const VkSamplerCreateInfo*, const VkAllocationCallbacks*,
            VkSampler*) noexcept nogil
        void (*vkDestroySampler)(VkDevice, VkSampler, const VkAllocationCallbacks*) noexcept nogil
        VkResult (*vkCreateShaderModule)(
            VkDevice, const VkShaderModuleCreateInfo*, const VkAllocationCallbacks*,
            VkShaderModule*) noexcept nogil
        void (*vkDestroyShaderModule)(
            VkDevice, VkShaderModule, const VkAllocationCallbacks*) noexcept nogil
        VkResult (*vkCreateDescriptorSetLayout)(
            VkDevice, const VkDescriptorSetLayoutCreateInfo*, const VkAllocationCallbacks*,
            VkDescriptorSetLayout*) noexcept nogil
        void (*vkDestroyDescriptorSetLayout)(
            VkDevice, VkDescriptorSetLayout, const VkAllocationCallbacks*) noexcept nogil
        VkResult (*vkCreatePipelineLayout)(
            VkDevice, const VkPipelineLayoutCreateInfo*, const VkAllocationCallbacks*,
            VkPipelineLayout*) noexcept nogil
        void (*vkDestroyPipelineLayout)(
            VkDevice, VkPipelineLayout, const VkAllocationCallbacks*) noexcept nogil
        VkResult (*vkCreatePipelineCache)(
            VkDevice, const VkPipelineCacheCreateInfo*, const VkAllocationCallbacks*,
            VkPipelineCache*) noexcept nogil
        void (*vkDestroyPipelineCache)(
            VkDevice, VkPipelineCache, const VkAllocationCallbacks*) noexcept nogil
        VkResult (*vkGetPipelineCacheData)(VkDevice, VkPipelineCache, size_t*, void*) noexcept nogil
        VkResult (*vkCreateComputePipelines)(
            VkDevice, VkPipelineCache, uint32_t, const VkComputePipelineCreateInfo*,
            const VkAllocationCallbacks*, VkPipeline*) noexcept nogil
        void (*vkDestroyPipeline)(VkDevice, VkPipeline, const VkAllocationCallbacks*) noexcept nogil
        VkResult (*vkCreateDescriptorPool)(
            VkDevice, const VkDescriptorPoolCreateInfo*, const VkAllocationCallbacks*,
            VkDescriptorPool*) noexcept nogil
        void (*vkDestroyDescriptorPool)(
            VkDevice, VkDescriptorPool, const VkAllocationCallbacks*) noexcept nogil
        VkResult (*vkAllocateDescriptorSets)(
            VkDevice, const VkDescriptorSetAllocateInfo*, VkDescriptorSet*) noexcept nogil
        void (*vkUpdateDescriptorSets)(
            VkDevice, uint32_t, const VkWriteDescriptorSet*, uint32_t,
            const VkCopyDescriptorSet*) noexcept nogil
        VkResult (*vkCreateCommandPool)(
            VkDevice, const VkCommandPoolCreateInfo*, const VkAllocationCallbacks*,
            VkCommandPool*) noexcept nogil
        void (*vkDestroyCommandPool)(
            VkDevice, VkCommandPool, const VkAllocationCallbacks*) noexcept nogil
        VkResult (*vkAllocateCommandBuffers)(
            VkDevice, const VkCommandBufferAllocateInfo*, VkCommandBuffer*) noexcept nogil
        void (*vkFreeCommandBuffers)(
            VkDevice, VkCommandPool, uint32_t, const VkCommandBuffer*) noexcept nogil
        VkResult (*vkBeginCommandBuffer)(
            VkCommandBuffer, const VkCommandBufferBeginInfo*) noexcept nogil
        VkResult (*vkEndCommandBuffer)(VkCommandBuffer) noexcept nogil
        void (*vkCmdBindPipeline)(VkCommandBuffer, VkPipelineBindPoint, VkPipeline) noexcept nogil
        void (*vkCmdBindDescriptorSets)(
            VkCommandBuffer, VkPipelineBindPoint, VkPipelineLayout, uint32_t, uint32_t,
            const VkDescriptorSet*, uint32_t, const uint32_t*) noexcept nogil
        void (*vkCmdPushConstants)(
            VkCommandBuffer, VkPipelineLayout, VkFlags, uint32_t, uint32_t,
            const void*) noexcept nogil
        void (*vkCmdDispatch)(VkCommandBuffer, uint32_t, uint32_t, uint32_t) noexcept nogil
        void (*vkCmdPipelineBarrier)(
            VkCommandBuffer, VkFlags, VkFlags, VkFlags, uint32_t, const VkMemoryBarrier*, uint32_t,
            const VkBufferMemoryBarrier*, uint32_t, const VkImageMemoryBarrier*) noexcept nogil
        void (*vkCmdCopyBuffer)(
            VkCommandBuffer, VkBuffer, VkBuffer, uint32_t, const VkBufferCopy*) noexcept nogil
        void (*vkCmdUpdateBuffer)(
            VkCommandBuffer, VkBuffer, VkDeviceSize, VkDeviceSize, const void*) noexcept nogil
        void (*vkCmdFillBuffer)(
            VkCommandBuffer, VkBuffer, VkDeviceSize, VkDeviceSize, uint32_t) noexcept nogil
        VkResult (*vkAllocateMemory)(
            VkDevice, const VkMemoryAllocateInfo*, const VkAllocationCallbacks*,
            VkDeviceMemory*) noexcept nogil
        void (*vkFreeMemory)(VkDevice, VkDeviceMemory, const VkAllocationCallbacks*) noexcept nogil
        VkResult (*vkBindBufferMemory)(
            VkDevice, VkBuffer, VkDeviceMemory, VkDeviceSize) noexcept nogil
        VkResult (*vkCreateSemaphore)(
            VkDevice, const VkSemaphoreCreateInfo*, const VkAllocationCallbacks*,
            VkSemaphore*) noexcept nogil
        void (*vkDestroySemaphore)(
            VkDevice, VkSemaphore, const VkAllocationCallbacks*) noexcept nogil
        VkResult (*vkWaitSemaphores)(VkDevice, const VkSemaphoreWaitInfo*, uint64_t) noexcept nogil
        VkResult (*vkSignalSemaphore)(VkDevice, const VkSemaphoreSignalInfo*) noexcept nogil
        VkResult (*vkGetMemoryHostPointerPropertiesEXT)(
            VkDevice, VkFlags, const void*, VkMemoryHostPointerPropertiesEXT*) noexcept nogil
        VkResult (*vkCreateFence)(
            VkDevice, const VkFenceCreateInfo*, const VkAllocationCallbacks*,
            VkFence*) noexcept nogil
        void (*vkDestroyFence)(VkDevice, VkFence, const VkAllocationCallbacks*) noexcept nogil
        VkResult (*vkResetFences)(VkDevice, uint32_t, const VkFence*) noexcept nogil
        VkResult (*vkWaitForFences)(
            VkDevice, uint32_t, const VkFence*, VkBool32, uint64_t) noexcept nogil
        VkResult (*vkCreateQueryPool)(
            VkDevice, const VkQueryPoolCreateInfo*, const VkAllocationCallbacks*,
            VkQueryPool*) noexcept nogil
        void (*vkDestroyQueryPool)(
            VkDevice, VkQueryPool, const VkAllocationCallbacks*) noexcept nogil
        void (*vkCmdResetQueryPool)(VkCommandBuffer, VkQueryPool, uint32_t, uint32_t) noexcept nogil
        void (*vkCmdWriteTimestamp)(VkCommandBuffer, int, VkQueryPool, uint32_t) noexcept nogil
        VkResult (*vkGetQueryPoolResults)(
            VkDevice, VkQueryPool, uint32_t, uint32_t, size_t, void*, VkDeviceSize,
            VkFlags) noexcept nogil

cdef extern int fill_instance_table "vkrt_fill_instance_table"(
    InstanceTable* table, PFN_vkGetInstanceProcAddr lookup, VkInstance instance,
    Error* error) noexcept nogil
cdef extern int fill_device_table "vkrt_fill_device_table"(
    DeviceTable* table, PFN_vkGetDeviceProcAddr lookup, VkDevice device,
    Error* error) noexcept nogil
