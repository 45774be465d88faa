/* What the core has of the Vulkan Memory Allocator, which vma.cpp hides: exact allocations of one
 * vkAllocateMemory each, mapped for their whole life, and the account of them. */
#ifndef VKRT_CORE_VMA
#define VKRT_CORE_VMA

/* As vulkan.pxd has it */
#ifndef VK_NO_PROTOTYPES
#define VK_NO_PROTOTYPES
#endif
#ifndef VK_DEFINE_NON_DISPATCHABLE_HANDLE
#include <stdint.h>
#define VK_DEFINE_NON_DISPATCHABLE_HANDLE(object) typedef uint64_t object;
#endif
#include <vulkan/vulkan_core.h>

#ifdef __cplusplus
extern "C" {
#endif

/* An allocator and an allocation are VMA's. A function that fails leaves what it should fill. */

VkResult vkrt_vma_open(VkInstance instance, VkPhysicalDevice physical, VkDevice device,
                       PFN_vkGetInstanceProcAddr instance_lookup,
                       PFN_vkGetDeviceProcAddr device_lookup, uint32_t api_version,
                       int has_budgets, void** allocator);
void vkrt_vma_close(void* allocator);

/* Of vkAllocateMemory (blocks), of what was asked for (allocations), and what the driver grants */
typedef struct {
  uint64_t block_bytes;
  uint64_t allocation_bytes;
  uint64_t budget;
  uint32_t block_count;
  uint32_t allocation_count;
} VkrtHeap;

/* Fills VK_MAX_MEMORY_HEAPS; those that the device does not have are zero. */
void vkrt_vma_heaps(void* allocator, VkrtHeap* heaps);

/* mapped: the host will see it, and `address` is filled */
VkResult vkrt_vma_allocate(void* allocator, const VkMemoryRequirements* needs, int mapped,
                           void** allocation, void** address);
void vkrt_vma_free(void* allocator, void* allocation);

/* Of memory that is not coherent; whole atoms of it */
VkResult vkrt_vma_flush(void* allocator, void* allocation, uint64_t offset, uint64_t size);
VkResult vkrt_vma_invalidate(void* allocator, void* allocation, uint64_t offset, uint64_t size);

VkResult vkrt_vma_bind_buffer(void* allocator, void* allocation, uint64_t offset, VkBuffer buffer);
VkResult vkrt_vma_bind_image(void* allocator, void* allocation, uint64_t offset, VkImage image);

#ifdef __cplusplus
}
#endif

#endif
