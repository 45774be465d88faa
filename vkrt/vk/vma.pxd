# cython: language_level=3
"""The Vulkan Memory Allocator's C declarations, as far as memory.pyx uses them."""

from libc.stdint cimport uint32_t

from vkrt.vk.api cimport (
    PFN_vkGetDeviceProcAddr, PFN_vkGetInstanceProcAddr, VkBuffer, VkDevice, VkDeviceSize, VkFlags,
    VkImage, VkInstance, VkMemoryRequirements, VkPhysicalDevice, VkResult,
)


cdef extern from * nogil:
    """
    #define VMA_STATIC_VULKAN_FUNCTIONS 0
    #define VMA_DYNAMIC_VULKAN_FUNCTIONS 1
    #define VMA_STATS_STRING_ENABLED 0
    #include <vk_mem_alloc.h>
    """
    ctypedef void* VmaAllocator
    ctypedef void* VmaAllocation

    enum:
        VMA_ALLOCATOR_CREATE_EXT_MEMORY_BUDGET_BIT
        VMA_ALLOCATION_CREATE_DEDICATED_MEMORY_BIT
        VMA_ALLOCATION_CREATE_MAPPED_BIT

    ctypedef struct VmaVulkanFunctions:
        PFN_vkGetInstanceProcAddr vkGetInstanceProcAddr
        PFN_vkGetDeviceProcAddr vkGetDeviceProcAddr
    ctypedef struct VmaAllocatorCreateInfo:
        VkFlags flags
        VkPhysicalDevice physicalDevice
        VkDevice device
        const VmaVulkanFunctions* pVulkanFunctions
        VkInstance instance
        uint32_t vulkanApiVersion
    ctypedef struct VmaAllocationCreateInfo:
        VkFlags flags
        uint32_t memoryTypeBits
    ctypedef struct VmaAllocationInfo:
        uint32_t memoryType
        VkDeviceSize size
        void* pMappedData
    ctypedef struct VmaStatistics:
        uint32_t blockCount
        uint32_t allocationCount
        VkDeviceSize blockBytes
        VkDeviceSize allocationBytes
    ctypedef struct VmaBudget:
        VmaStatistics statistics
        VkDeviceSize usage
        VkDeviceSize budget

    VkResult vmaCreateAllocator(const VmaAllocatorCreateInfo*, VmaAllocator*)
    void vmaDestroyAllocator(VmaAllocator)
    void vmaGetHeapBudgets(VmaAllocator, VmaBudget*)
    VkResult vmaAllocateMemory(VmaAllocator, const VkMemoryRequirements*,
                               const VmaAllocationCreateInfo*, VmaAllocation*, VmaAllocationInfo*)
    void vmaFreeMemory(VmaAllocator, VmaAllocation)
    VkResult vmaFlushAllocation(VmaAllocator, VmaAllocation, VkDeviceSize, VkDeviceSize)
    VkResult vmaInvalidateAllocation(VmaAllocator, VmaAllocation, VkDeviceSize, VkDeviceSize)
    VkResult vmaBindBufferMemory2(VmaAllocator, VmaAllocation, VkDeviceSize, VkBuffer, const void*)
    VkResult vmaBindImageMemory2(VmaAllocator, VmaAllocation, VkDeviceSize, VkImage, const void*)
