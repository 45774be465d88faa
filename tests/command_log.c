/* A Vulkan library that passes everything on to libvulkan.so.1 and prints what is recorded into
   command buffers, one line a command, to stdout:

       begin
       barrier SOURCE_STAGES SOURCE_ACCESS STAGES ACCESS IMAGES    (flags in hexadecimal, a number)
       dispatch
       copy

   Accesses are those of the memory barrier; images are the layouts that change with it. Tests use
   it (VKRT_VULKAN_LIBRARY) to see what a driver was told where no driver and no layer minds. */

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <vulkan/vulkan.h>

static PFN_vkGetInstanceProcAddr instance_entry;
static PFN_vkGetDeviceProcAddr device_entry;
static PFN_vkBeginCommandBuffer begin;
static PFN_vkCmdPipelineBarrier barrier;
static PFN_vkCmdDispatch dispatch;
static PFN_vkCmdCopyBuffer copy;

static VkResult log_begin(VkCommandBuffer commands, const VkCommandBufferBeginInfo* info) {
  puts("begin");
  return begin(commands, info);
}

static void log_barrier(VkCommandBuffer commands, VkPipelineStageFlags source,
                        VkPipelineStageFlags target, VkDependencyFlags flags, uint32_t memories,
                        const VkMemoryBarrier* memory, uint32_t buffers,
                        const VkBufferMemoryBarrier* buffer, uint32_t images,
                        const VkImageMemoryBarrier* image) {
  printf("barrier %x %x %x %x %u\n", source, memories ? memory->srcAccessMask : 0, target,
         memories ? memory->dstAccessMask : 0, images);
  barrier(commands, source, target, flags, memories, memory, buffers, buffer, images, image);
}

static void log_dispatch(VkCommandBuffer commands, uint32_t x, uint32_t y, uint32_t z) {
  puts("dispatch");
  dispatch(commands, x, y, z);
}

static void log_copy(VkCommandBuffer commands, VkBuffer source, VkBuffer target, uint32_t number,
                     const VkBufferCopy* regions) {
  puts("copy");
  copy(commands, source, target, number, regions);
}

#define LOG(name, real, logged)              \
  if (!strcmp(asked, name)) {                \
    real = (void*)device_entry(device, asked); \
    return (PFN_vkVoidFunction)logged;       \
  }

static PFN_vkVoidFunction log_device_entry(VkDevice device, const char* asked) {
  LOG("vkBeginCommandBuffer", begin, log_begin)
  LOG("vkCmdPipelineBarrier", barrier, log_barrier)
  LOG("vkCmdDispatch", dispatch, log_dispatch)
  LOG("vkCmdCopyBuffer", copy, log_copy)
  return device_entry(device, asked);
}

PFN_vkVoidFunction vkGetInstanceProcAddr(VkInstance instance, const char* asked) {
  if (!instance_entry) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    instance_entry = (PFN_vkGetInstanceProcAddr)dlsym(
        dlopen("libvulkan.so.1", RTLD_NOW | RTLD_LOCAL), "vkGetInstanceProcAddr");
  }
  if (!strcmp(asked, "vkGetDeviceProcAddr")) {
    device_entry = (PFN_vkGetDeviceProcAddr)instance_entry(instance, asked);
    return (PFN_vkVoidFunction)log_device_entry;
  }
  return instance_entry(instance, asked);
}
