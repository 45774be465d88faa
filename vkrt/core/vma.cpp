// The one translation unit of the Vulkan Memory Allocator, the only C++ of the core.
//
// It calls Vulkan through the two lookup functions that it is given, so nothing here links against
// libvulkan. Nor does it need the library of C++: it is compiled without exceptions and type
// information, its locks are those of POSIX, and nothing is made with `new`. No name of VMA leaves
// this file: a host may have another version of it.

#include <algorithm>
#include <atomic>
#include <cassert>
#include <cinttypes>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <type_traits>
#include <utility>

#include <pthread.h>

#include "vma.h"

#include <vulkan/vulkan.h>

// Classes with a virtual destructor name the operator in a function that is never called, since VMA
// frees what it allocates itself. It goes by another name, because that of the operator would
// replace the one of a host in C++.
void operator delete(void* memory, std::size_t size) noexcept __asm__("vkrt_vma_delete");

#define VMA_IMPLEMENTATION
#define VMA_CALL_PRE static
#define VMA_STATIC_VULKAN_FUNCTIONS 0
#define VMA_DYNAMIC_VULKAN_FUNCTIONS 1
#define VMA_STATS_STRING_ENABLED 0
// Handles are numbers (vma.h): they cannot be null pointers, and clang refuses to be told so.
#define VMA_NOT_NULL_NON_DISPATCHABLE
#define VMA_NULLABLE_NON_DISPATCHABLE

namespace {

class Mutex {
 public:
  void Lock() {
    pthread_mutex_lock(&mutex);
  }
  void Unlock() {
    pthread_mutex_unlock(&mutex);
  }
  bool TryLock() {
    return pthread_mutex_trylock(&mutex) == 0;
  }

 private:
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
};

// Android has no aligned_alloc before version 28. This one wants no less than a pointer's alignment.
void* allocate_aligned(std::size_t size, std::size_t alignment) {
  void* memory = nullptr;
  return posix_memalign(&memory, std::max(alignment, sizeof(void*)), size) == 0 ? memory : nullptr;
}

#define VMA_MUTEX Mutex
#define VMA_USE_STL_SHARED_MUTEX 0
#define VMA_SYSTEM_ALIGNED_MALLOC(size, alignment) allocate_aligned(size, alignment)
#define VMA_SYSTEM_ALIGNED_FREE(memory) std::free(memory)

#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
#pragma GCC diagnostic ignored "-Wparentheses"
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wunused-variable"
#endif

#include <vk_mem_alloc.h>

#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

VmaAllocator allocator_of(void* allocator) {
  return static_cast<VmaAllocator>(allocator);
}

VmaAllocation allocation_of(void* allocation) {
  return static_cast<VmaAllocation>(allocation);
}

} // namespace

extern "C" void vkrt_vma_delete(void*, std::size_t) noexcept {
  std::abort();
}

VkResult vkrt_vma_open(VkInstance instance, VkPhysicalDevice physical, VkDevice device,
                       PFN_vkGetInstanceProcAddr instance_lookup,
                       PFN_vkGetDeviceProcAddr device_lookup, uint32_t api_version,
                       int has_budgets, void** allocator) {
  VmaVulkanFunctions functions = {};
  functions.vkGetInstanceProcAddr = instance_lookup;
  functions.vkGetDeviceProcAddr = device_lookup;
  VmaAllocatorCreateInfo info = {};
  info.instance = instance;
  info.physicalDevice = physical;
  info.device = device;
  info.pVulkanFunctions = &functions;
  info.vulkanApiVersion = api_version;
  if (has_budgets) info.flags |= VMA_ALLOCATOR_CREATE_EXT_MEMORY_BUDGET_BIT;
  VmaAllocator made = nullptr;
  VkResult result = vmaCreateAllocator(&info, &made);
  if (result == VK_SUCCESS) *allocator = made;
  return result;
}

void vkrt_vma_close(void* allocator) {
  vmaDestroyAllocator(allocator_of(allocator));
}

void vkrt_vma_heaps(void* allocator, VkrtHeap* heaps) {
  VmaBudget budgets[VK_MAX_MEMORY_HEAPS] = {};
  vmaGetHeapBudgets(allocator_of(allocator), budgets);
  for (const VmaBudget& budget : budgets) {
    const VmaStatistics& statistics = budget.statistics;
    *heaps++ = {statistics.blockBytes, statistics.allocationBytes, budget.budget,
                statistics.blockCount, statistics.allocationCount};
  }
}

VkResult vkrt_vma_allocate(void* allocator, const VkMemoryRequirements* needs, int mapped,
                           void** allocation, void** address) {
  VmaAllocationCreateInfo info = {};
  info.flags = VMA_ALLOCATION_CREATE_DEDICATED_MEMORY_BIT;
  info.memoryTypeBits = needs->memoryTypeBits;
  if (mapped) info.flags |= VMA_ALLOCATION_CREATE_MAPPED_BIT;
  VmaAllocation made = nullptr;
  VmaAllocationInfo about = {};
  VkResult result = vmaAllocateMemory(allocator_of(allocator), needs, &info, &made, &about);
  if (result == VK_SUCCESS) {
    *allocation = made;
    *address = about.pMappedData;
  }
  return result;
}

void vkrt_vma_free(void* allocator, void* allocation) {
  vmaFreeMemory(allocator_of(allocator), allocation_of(allocation));
}

VkResult vkrt_vma_flush(void* allocator, void* allocation, uint64_t offset, uint64_t size) {
  return vmaFlushAllocation(allocator_of(allocator), allocation_of(allocation), offset, size);
}

VkResult vkrt_vma_invalidate(void* allocator, void* allocation, uint64_t offset, uint64_t size) {
  return vmaInvalidateAllocation(allocator_of(allocator), allocation_of(allocation), offset, size);
}

VkResult vkrt_vma_bind_buffer(void* allocator, void* allocation, uint64_t offset, VkBuffer buffer) {
  return vmaBindBufferMemory2(allocator_of(allocator), allocation_of(allocation), offset, buffer,
                              nullptr);
}

VkResult vkrt_vma_bind_image(void* allocator, void* allocation, uint64_t offset, VkImage image) {
  return vmaBindImageMemory2(allocator_of(allocator), allocation_of(allocation), offset, image,
                             nullptr);
}
