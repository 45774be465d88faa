// The one translation unit of the Vulkan Memory Allocator, the only C++ of the runtime.
//
// It calls Vulkan through the two lookup functions given to vmaCreateAllocator, so nothing here
// links against libvulkan either. Its symbols stay inside the extension module.

#define VK_NO_PROTOTYPES
#define VMA_IMPLEMENTATION
#define VMA_STATIC_VULKAN_FUNCTIONS 0
#define VMA_DYNAMIC_VULKAN_FUNCTIONS 1
#define VMA_STATS_STRING_ENABLED 0

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
