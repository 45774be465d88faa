# cython: language_level=3
"""Fills the function tables: the address of each Vulkan function, asked once.

A table of the device's own addresses skips the dispatch of the loader, and what is never linked
cannot keep vkrt from being imported where there is no Vulkan.
"""

from vkrt.errors import LoaderError


cdef PFN_vkVoidFunction of_instance(PFN_vkGetInstanceProcAddr lookup, VkInstance instance,
                                    const char* name) except NULL:
    cdef PFN_vkVoidFunction found = lookup(instance, name)
    if found == NULL:
        raise LoaderError(f"the Vulkan library has no {name.decode()}: vkrt needs Vulkan 1.1",
                          call=name.decode())
    return found


cdef PFN_vkVoidFunction of_device(PFN_vkGetDeviceProcAddr lookup, VkDevice device,
                                  const char* name) except NULL:
    cdef PFN_vkVoidFunction found = lookup(device, name)
    if found == NULL:
        raise LoaderError(f"the Vulkan driver has no {name.decode()}", call=name.decode())
    return found


cdef PFN_vkVoidFunction either(PFN_vkGetDeviceProcAddr lookup, VkDevice device,
                               const char* name, const char* other) noexcept:
    cdef PFN_vkVoidFunction found = lookup(device, name)
    return found if found != NULL else lookup(device, other)


cdef int fill_instance_table(InstanceTable* table, PFN_vkGetInstanceProcAddr lookup,
                             VkInstance instance) except -1:
    table.vkGetInstanceProcAddr = lookup
    table.vkGetDeviceProcAddr = <PFN_vkGetDeviceProcAddr>of_instance(
        lookup, instance, b"vkGetDeviceProcAddr")
    table.vkDestroyInstance = <PFN_vkDestroyInstance>of_instance(
        lookup, instance, b"vkDestroyInstance")
    table.vkEnumeratePhysicalDevices = <PFN_vkEnumeratePhysicalDevices>of_instance(
        lookup, instance, b"vkEnumeratePhysicalDevices")
    table.vkGetPhysicalDeviceProperties = <PFN_vkGetPhysicalDeviceProperties>of_instance(
        lookup, instance, b"vkGetPhysicalDeviceProperties")
    table.vkGetPhysicalDeviceProperties2 = <PFN_vkGetPhysicalDeviceProperties2>of_instance(
        lookup, instance, b"vkGetPhysicalDeviceProperties2")
    table.vkGetPhysicalDeviceFeatures2 = <PFN_vkGetPhysicalDeviceFeatures2>of_instance(
        lookup, instance, b"vkGetPhysicalDeviceFeatures2")
    table.vkGetPhysicalDeviceMemoryProperties = (
        <PFN_vkGetPhysicalDeviceMemoryProperties>of_instance(
            lookup, instance, b"vkGetPhysicalDeviceMemoryProperties"))
    table.vkGetPhysicalDeviceQueueFamilyProperties = (
        <PFN_vkGetPhysicalDeviceQueueFamilyProperties>of_instance(
            lookup, instance, b"vkGetPhysicalDeviceQueueFamilyProperties"))
    table.vkEnumerateDeviceExtensionProperties = (
        <PFN_vkEnumerateDeviceExtensionProperties>of_instance(
            lookup, instance, b"vkEnumerateDeviceExtensionProperties"))
    table.vkCreateDevice = <PFN_vkCreateDevice>of_instance(lookup, instance, b"vkCreateDevice")
    # NULL without their extension
    table.vkCreateDebugUtilsMessengerEXT = <PFN_vkCreateDebugUtilsMessengerEXT>lookup(
        instance, b"vkCreateDebugUtilsMessengerEXT")
    table.vkDestroyDebugUtilsMessengerEXT = <PFN_vkDestroyDebugUtilsMessengerEXT>lookup(
        instance, b"vkDestroyDebugUtilsMessengerEXT")
    return 0


cdef int fill_device_table(DeviceTable* table, PFN_vkGetDeviceProcAddr lookup,
                           VkDevice device) except -1:
    table.vkDestroyDevice = <PFN_vkDestroyDevice>of_device(lookup, device, b"vkDestroyDevice")
    table.vkGetDeviceQueue = <PFN_vkGetDeviceQueue>of_device(lookup, device, b"vkGetDeviceQueue")
    table.vkDeviceWaitIdle = <PFN_vkDeviceWaitIdle>of_device(lookup, device, b"vkDeviceWaitIdle")
    table.vkQueueSubmit = <PFN_vkQueueSubmit>of_device(lookup, device, b"vkQueueSubmit")
    table.vkQueueWaitIdle = <PFN_vkQueueWaitIdle>of_device(lookup, device, b"vkQueueWaitIdle")
    table.vkCreateBuffer = <PFN_vkCreateBuffer>of_device(lookup, device, b"vkCreateBuffer")
    table.vkDestroyBuffer = <PFN_vkDestroyBuffer>of_device(lookup, device, b"vkDestroyBuffer")
    table.vkGetBufferMemoryRequirements = <PFN_vkGetBufferMemoryRequirements>of_device(
        lookup, device, b"vkGetBufferMemoryRequirements")
    table.vkCreateBufferView = <PFN_vkCreateBufferView>of_device(
        lookup, device, b"vkCreateBufferView")
    table.vkDestroyBufferView = <PFN_vkDestroyBufferView>of_device(
        lookup, device, b"vkDestroyBufferView")
    table.vkCreateImage = <PFN_vkCreateImage>of_device(lookup, device, b"vkCreateImage")
    table.vkDestroyImage = <PFN_vkDestroyImage>of_device(lookup, device, b"vkDestroyImage")
    table.vkGetImageMemoryRequirements = <PFN_vkGetImageMemoryRequirements>of_device(
        lookup, device, b"vkGetImageMemoryRequirements")
    table.vkCreateImageView = <PFN_vkCreateImageView>of_device(lookup, device, b"vkCreateImageView")
    table.vkDestroyImageView = <PFN_vkDestroyImageView>of_device(
        lookup, device, b"vkDestroyImageView")
    table.vkCreateSampler = <PFN_vkCreateSampler>of_device(lookup, device, b"vkCreateSampler")
    table.vkDestroySampler = <PFN_vkDestroySampler>of_device(lookup, device, b"vkDestroySampler")
    table.vkCreateShaderModule = <PFN_vkCreateShaderModule>of_device(
        lookup, device, b"vkCreateShaderModule")
    table.vkDestroyShaderModule = <PFN_vkDestroyShaderModule>of_device(
        lookup, device, b"vkDestroyShaderModule")
    table.vkCreateDescriptorSetLayout = <PFN_vkCreateDescriptorSetLayout>of_device(
        lookup, device, b"vkCreateDescriptorSetLayout")
    table.vkDestroyDescriptorSetLayout = <PFN_vkDestroyDescriptorSetLayout>of_device(
        lookup, device, b"vkDestroyDescriptorSetLayout")
    table.vkCreatePipelineLayout = <PFN_vkCreatePipelineLayout>of_device(
        lookup, device, b"vkCreatePipelineLayout")
    table.vkDestroyPipelineLayout = <PFN_vkDestroyPipelineLayout>of_device(
        lookup, device, b"vkDestroyPipelineLayout")
    table.vkCreatePipelineCache = <PFN_vkCreatePipelineCache>of_device(
        lookup, device, b"vkCreatePipelineCache")
    table.vkDestroyPipelineCache = <PFN_vkDestroyPipelineCache>of_device(
        lookup, device, b"vkDestroyPipelineCache")
    table.vkGetPipelineCacheData = <PFN_vkGetPipelineCacheData>of_device(
        lookup, device, b"vkGetPipelineCacheData")
    table.vkCreateComputePipelines = <PFN_vkCreateComputePipelines>of_device(
        lookup, device, b"vkCreateComputePipelines")
    table.vkDestroyPipeline = <PFN_vkDestroyPipeline>of_device(lookup, device, b"vkDestroyPipeline")
    table.vkCreateDescriptorPool = <PFN_vkCreateDescriptorPool>of_device(
        lookup, device, b"vkCreateDescriptorPool")
    table.vkDestroyDescriptorPool = <PFN_vkDestroyDescriptorPool>of_device(
        lookup, device, b"vkDestroyDescriptorPool")
    table.vkAllocateDescriptorSets = <PFN_vkAllocateDescriptorSets>of_device(
        lookup, device, b"vkAllocateDescriptorSets")
    table.vkUpdateDescriptorSets = <PFN_vkUpdateDescriptorSets>of_device(
        lookup, device, b"vkUpdateDescriptorSets")
    table.vkCreateCommandPool = <PFN_vkCreateCommandPool>of_device(
        lookup, device, b"vkCreateCommandPool")
    table.vkDestroyCommandPool = <PFN_vkDestroyCommandPool>of_device(
        lookup, device, b"vkDestroyCommandPool")
    table.vkAllocateCommandBuffers = <PFN_vkAllocateCommandBuffers>of_device(
        lookup, device, b"vkAllocateCommandBuffers")
    table.vkFreeCommandBuffers = <PFN_vkFreeCommandBuffers>of_device(
        lookup, device, b"vkFreeCommandBuffers")
    table.vkBeginCommandBuffer = <PFN_vkBeginCommandBuffer>of_device(
        lookup, device, b"vkBeginCommandBuffer")
    table.vkEndCommandBuffer = <PFN_vkEndCommandBuffer>of_device(
        lookup, device, b"vkEndCommandBuffer")
    table.vkCmdBindPipeline = <PFN_vkCmdBindPipeline>of_device(lookup, device, b"vkCmdBindPipeline")
    table.vkCmdBindDescriptorSets = <PFN_vkCmdBindDescriptorSets>of_device(
        lookup, device, b"vkCmdBindDescriptorSets")
    table.vkCmdPushConstants = <PFN_vkCmdPushConstants>of_device(
        lookup, device, b"vkCmdPushConstants")
    table.vkCmdDispatch = <PFN_vkCmdDispatch>of_device(lookup, device, b"vkCmdDispatch")
    table.vkCmdPipelineBarrier = <PFN_vkCmdPipelineBarrier>of_device(
        lookup, device, b"vkCmdPipelineBarrier")
    table.vkCmdCopyBuffer = <PFN_vkCmdCopyBuffer>of_device(lookup, device, b"vkCmdCopyBuffer")
    table.vkCmdFillBuffer = <PFN_vkCmdFillBuffer>of_device(lookup, device, b"vkCmdFillBuffer")
    table.vkAllocateMemory = <PFN_vkAllocateMemory>of_device(lookup, device, b"vkAllocateMemory")
    table.vkFreeMemory = <PFN_vkFreeMemory>of_device(lookup, device, b"vkFreeMemory")
    table.vkBindBufferMemory = <PFN_vkBindBufferMemory>of_device(
        lookup, device, b"vkBindBufferMemory")
    table.vkCreateSemaphore = <PFN_vkCreateSemaphore>of_device(
        lookup, device, b"vkCreateSemaphore")
    table.vkDestroySemaphore = <PFN_vkDestroySemaphore>of_device(
        lookup, device, b"vkDestroySemaphore")
    # NULL before Vulkan 1.2, which may know them by the extension's names
    table.vkWaitSemaphores = <PFN_vkWaitSemaphores>either(
        lookup, device, b"vkWaitSemaphores", b"vkWaitSemaphoresKHR")
    table.vkSignalSemaphore = <PFN_vkSignalSemaphore>either(
        lookup, device, b"vkSignalSemaphore", b"vkSignalSemaphoreKHR")
    table.vkGetSemaphoreCounterValue = <PFN_vkGetSemaphoreCounterValue>either(
        lookup, device, b"vkGetSemaphoreCounterValue", b"vkGetSemaphoreCounterValueKHR")
    table.vkGetMemoryHostPointerPropertiesEXT = <PFN_vkGetMemoryHostPointerPropertiesEXT>lookup(
        device, b"vkGetMemoryHostPointerPropertiesEXT")
    table.vkCreateFence = <PFN_vkCreateFence>of_device(lookup, device, b"vkCreateFence")
    table.vkDestroyFence = <PFN_vkDestroyFence>of_device(lookup, device, b"vkDestroyFence")
    table.vkResetFences = <PFN_vkResetFences>of_device(lookup, device, b"vkResetFences")
    table.vkWaitForFences = <PFN_vkWaitForFences>of_device(lookup, device, b"vkWaitForFences")
    table.vkCreateQueryPool = <PFN_vkCreateQueryPool>of_device(lookup, device, b"vkCreateQueryPool")
    table.vkDestroyQueryPool = <PFN_vkDestroyQueryPool>of_device(
        lookup, device, b"vkDestroyQueryPool")
    table.vkCmdResetQueryPool = <PFN_vkCmdResetQueryPool>of_device(
        lookup, device, b"vkCmdResetQueryPool")
    table.vkCmdWriteTimestamp = <PFN_vkCmdWriteTimestamp>of_device(
        lookup, device, b"vkCmdWriteTimestamp")
    table.vkGetQueryPoolResults = <PFN_vkGetQueryPoolResults>of_device(
        lookup, device, b"vkGetQueryPoolResults")
    return 0
