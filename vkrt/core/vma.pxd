"""The Vulkan Memory Allocator, as far as the core uses it."""

from libc.stdint cimport uint32_t, uint64_t

from vkrt.core.vulkan cimport (
    PFN_vkGetDeviceProcAddr, PFN_vkGetInstanceProcAddr, VkBuffer, VkDevice, VkImage, VkInstance,
    VkMemoryRequirements, VkPhysicalDevice, VkResult,
)

cdef extern from "vma.h" nogil:
    ctypedef struct Heap "VkrtHeap":
        uint64_t block_bytes
        uint64_t allocation_bytes
        uint64_t budget
        uint32_t block_count
        uint32_t allocation_count

    VkResult vkrt_vma_open(VkInstance, VkPhysicalDevice, VkDevice, PFN_vkGetInstanceProcAddr,
                           PFN_vkGetDeviceProcAddr, uint32_t api_version, bint has_budgets,
                           void** allocator)
    void vkrt_vma_close(void* allocator)
    void vkrt_vma_heaps(void* allocator, Heap* heaps)
    VkResult vkrt_vma_allocate(void* allocator, const VkMemoryRequirements* needs, bint mapped,
                               void** allocation, void** address)
    void vkrt_vma_free(void* allocator, void* allocation)
    VkResult vkrt_vma_flush(void* allocator, void* allocation, uint64_t offset, uint64_t size)
    VkResult vkrt_vma_invalidate(void* allocator, void* allocation, uint64_t offset, uint64_t size)
    VkResult vkrt_vma_bind_buffer(void* allocator, void* allocation, uint64_t offset, VkBuffer)
    VkResult vkrt_vma_bind_image(void* allocator, void* allocation, uint64_t offset, VkImage)
