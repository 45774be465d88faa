# cython: language_level=3
"""Tables of Vulkan functions: one for an instance, one for a device."""

from vkrt.vk.api cimport *


cdef struct InstanceTable:
    PFN_vkGetInstanceProcAddr vkGetInstanceProcAddr
    PFN_vkGetDeviceProcAddr vkGetDeviceProcAddr
    PFN_vkDestroyInstance vkDestroyInstance
    PFN_vkEnumeratePhysicalDevices vkEnumeratePhysicalDevices
    PFN_vkGetPhysicalDeviceProperties vkGetPhysicalDeviceProperties
    PFN_vkGetPhysicalDeviceProperties2 vkGetPhysicalDeviceProperties2
    PFN_vkGetPhysicalDeviceFeatures2 vkGetPhysicalDeviceFeatures2
    PFN_vkGetPhysicalDeviceMemoryProperties vkGetPhysicalDeviceMemoryProperties
    PFN_vkGetPhysicalDeviceQueueFamilyProperties vkGetPhysicalDeviceQueueFamilyProperties
    PFN_vkEnumerateDeviceExtensionProperties vkEnumerateDeviceExtensionProperties
    PFN_vkCreateDevice vkCreateDevice
    # NULL unless VK_EXT_debug_utils is enabled
    PFN_vkCreateDebugUtilsMessengerEXT vkCreateDebugUtilsMessengerEXT
    PFN_vkDestroyDebugUtilsMessengerEXT vkDestroyDebugUtilsMessengerEXT


cdef struct DeviceTable:
    PFN_vkDestroyDevice vkDestroyDevice
    PFN_vkGetDeviceQueue vkGetDeviceQueue
    PFN_vkDeviceWaitIdle vkDeviceWaitIdle
    PFN_vkQueueSubmit vkQueueSubmit
    PFN_vkQueueWaitIdle vkQueueWaitIdle
    PFN_vkCreateBuffer vkCreateBuffer
    PFN_vkDestroyBuffer vkDestroyBuffer
    PFN_vkGetBufferMemoryRequirements vkGetBufferMemoryRequirements
    PFN_vkCreateBufferView vkCreateBufferView
    PFN_vkDestroyBufferView vkDestroyBufferView
    PFN_vkCreateImage vkCreateImage
    PFN_vkDestroyImage vkDestroyImage
    PFN_vkGetImageMemoryRequirements vkGetImageMemoryRequirements
    PFN_vkCreateImageView vkCreateImageView
    PFN_vkDestroyImageView vkDestroyImageView
    PFN_vkCreateSampler vkCreateSampler
    PFN_vkDestroySampler vkDestroySampler
    PFN_vkCreateShaderModule vkCreateShaderModule
    PFN_vkDestroyShaderModule vkDestroyShaderModule
    PFN_vkCreateDescriptorSetLayout vkCreateDescriptorSetLayout
    PFN_vkDestroyDescriptorSetLayout vkDestroyDescriptorSetLayout
    PFN_vkCreatePipelineLayout vkCreatePipelineLayout
    PFN_vkDestroyPipelineLayout vkDestroyPipelineLayout
    PFN_vkCreatePipelineCache vkCreatePipelineCache
    PFN_vkDestroyPipelineCache vkDestroyPipelineCache
    PFN_vkGetPipelineCacheData vkGetPipelineCacheData
    PFN_vkCreateComputePipelines vkCreateComputePipelines
    PFN_vkDestroyPipeline vkDestroyPipeline
    PFN_vkCreateDescriptorPool vkCreateDescriptorPool
    PFN_vkDestroyDescriptorPool vkDestroyDescriptorPool
    PFN_vkAllocateDescriptorSets vkAllocateDescriptorSets
    PFN_vkUpdateDescriptorSets vkUpdateDescriptorSets
    PFN_vkCreateCommandPool vkCreateCommandPool
    PFN_vkDestroyCommandPool vkDestroyCommandPool
    PFN_vkAllocateCommandBuffers vkAllocateCommandBuffers
    PFN_vkFreeCommandBuffers vkFreeCommandBuffers
    PFN_vkBeginCommandBuffer vkBeginCommandBuffer
    PFN_vkEndCommandBuffer vkEndCommandBuffer
    PFN_vkCmdBindPipeline vkCmdBindPipeline
    PFN_vkCmdBindDescriptorSets vkCmdBindDescriptorSets
    PFN_vkCmdPushConstants vkCmdPushConstants
    PFN_vkCmdDispatch vkCmdDispatch
    PFN_vkCmdPipelineBarrier vkCmdPipelineBarrier
    PFN_vkCmdCopyBuffer vkCmdCopyBuffer
    PFN_vkCmdFillBuffer vkCmdFillBuffer
    PFN_vkAllocateMemory vkAllocateMemory
    PFN_vkFreeMemory vkFreeMemory
    PFN_vkBindBufferMemory vkBindBufferMemory
    PFN_vkCreateSemaphore vkCreateSemaphore
    PFN_vkDestroySemaphore vkDestroySemaphore
    # NULL without timeline semaphores
    PFN_vkWaitSemaphores vkWaitSemaphores
    PFN_vkSignalSemaphore vkSignalSemaphore
    PFN_vkGetSemaphoreCounterValue vkGetSemaphoreCounterValue
    # NULL without VK_EXT_external_memory_host
    PFN_vkGetMemoryHostPointerPropertiesEXT vkGetMemoryHostPointerPropertiesEXT
    PFN_vkCreateFence vkCreateFence
    PFN_vkDestroyFence vkDestroyFence
    PFN_vkResetFences vkResetFences
    PFN_vkWaitForFences vkWaitForFences
    PFN_vkCreateQueryPool vkCreateQueryPool
    PFN_vkDestroyQueryPool vkDestroyQueryPool
    PFN_vkCmdResetQueryPool vkCmdResetQueryPool
    PFN_vkCmdWriteTimestamp vkCmdWriteTimestamp
    PFN_vkGetQueryPoolResults vkGetQueryPoolResults


cdef int fill_instance_table(InstanceTable* table, PFN_vkGetInstanceProcAddr lookup,
                             VkInstance instance) except -1
cdef int fill_device_table(DeviceTable* table, PFN_vkGetDeviceProcAddr lookup,
                           VkDevice device) except -1
