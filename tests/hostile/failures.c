/* Calls that fail, as a test asks for: the n-th call of one function from now on, once, so many times
 * or for good. A call that fails does nothing, but a submission or a wait that fails does not stop
 * what the device is at either. */
#include <string.h>

#include "layer.h"

#define CREATING(X, What) \
  X(Create##What, (VkDevice of, const Vk##What##CreateInfo* info, CALLBACKS, Vk##What* made), \
    (of, info, callbacks, made))
/* Every function with a result that vkrt or VMA asks a device for: name, parameters, arguments */
#define FAILING(X) \
  X(DeviceWaitIdle, (VkDevice of), (of)) \
  X(QueueSubmit, (VkQueue of, uint32_t count, const VkSubmitInfo* infos, VkFence fence), \
    (of, count, infos, fence)) \
  CREATING(X, Buffer) CREATING(X, BufferView) CREATING(X, Image) CREATING(X, ImageView) \
  CREATING(X, Sampler) CREATING(X, ShaderModule) CREATING(X, DescriptorSetLayout) \
  CREATING(X, PipelineLayout) CREATING(X, PipelineCache) CREATING(X, DescriptorPool) \
  CREATING(X, CommandPool) CREATING(X, Semaphore) CREATING(X, Fence) CREATING(X, QueryPool) \
  X(GetPipelineCacheData, (VkDevice of, VkPipelineCache cache, size_t* size, void* data), \
    (of, cache, size, data)) \
  X(CreateComputePipelines, (VkDevice of, VkPipelineCache cache, uint32_t count, \
                             const VkComputePipelineCreateInfo* infos, CALLBACKS, \
                             VkPipeline* made), (of, cache, count, infos, callbacks, made)) \
  X(AllocateDescriptorSets, (VkDevice of, const VkDescriptorSetAllocateInfo* info, \
                             VkDescriptorSet* made), (of, info, made)) \
  X(AllocateCommandBuffers, (VkDevice of, const VkCommandBufferAllocateInfo* info, \
                             VkCommandBuffer* made), (of, info, made)) \
  X(BeginCommandBuffer, (VkCommandBuffer of, const VkCommandBufferBeginInfo* info), (of, info)) \
  X(EndCommandBuffer, (VkCommandBuffer of), (of)) \
  X(AllocateMemory, (VkDevice of, const VkMemoryAllocateInfo* info, CALLBACKS, \
                     VkDeviceMemory* made), (of, info, callbacks, made)) \
  X(MapMemory, (VkDevice of, VkDeviceMemory memory, VkDeviceSize offset, VkDeviceSize size, \
                VkMemoryMapFlags flags, void** made), (of, memory, offset, size, flags, made)) \
  X(FlushMappedMemoryRanges, (VkDevice of, uint32_t count, const VkMappedMemoryRange* ranges), \
    (of, count, ranges)) \
  X(InvalidateMappedMemoryRanges, (VkDevice of, uint32_t count, \
                                   const VkMappedMemoryRange* ranges), (of, count, ranges)) \
  X(BindBufferMemory, (VkDevice of, VkBuffer buffer, VkDeviceMemory memory, VkDeviceSize offset), \
    (of, buffer, memory, offset)) \
  X(BindBufferMemory2, (VkDevice of, uint32_t count, const VkBindBufferMemoryInfo* infos), \
    (of, count, infos)) \
  X(BindImageMemory, (VkDevice of, VkImage image, VkDeviceMemory memory, VkDeviceSize offset), \
    (of, image, memory, offset)) \
  X(BindImageMemory2, (VkDevice of, uint32_t count, const VkBindImageMemoryInfo* infos), \
    (of, count, infos)) \
  X(WaitSemaphores, (VkDevice of, const VkSemaphoreWaitInfo* info, uint64_t timeout), \
    (of, info, timeout)) \
  X(SignalSemaphore, (VkDevice of, const VkSemaphoreSignalInfo* info), (of, info)) \
  X(GetMemoryHostPointerPropertiesEXT, \
    (VkDevice of, VkExternalMemoryHandleTypeFlagBits type, const void* pointer, \
     VkMemoryHostPointerPropertiesEXT* found), (of, type, pointer, found)) \
  X(ResetFences, (VkDevice of, uint32_t count, const VkFence* fences), (of, count, fences)) \
  X(WaitForFences, (VkDevice of, uint32_t count, const VkFence* fences, VkBool32 all, \
                    uint64_t timeout), (of, count, fences, all, timeout)) \
  X(GetQueryPoolResults, (VkDevice of, VkQueryPool pool, uint32_t first, uint32_t count, \
                          size_t size, void* data, VkDeviceSize stride, VkQueryResultFlags flags), \
    (of, pool, first, count, size, data, stride, flags))

#define NUMBER(name, parameters, arguments) NUMBER_##name,
enum { FAILING(NUMBER) COUNT };
#define NAME(name, parameters, arguments) "vk" #name,
static const char* const names[COUNT + 1] = {FAILING(NAME) NULL};

_Static_assert(COUNT <= MAX_FAILING, "struct device has room for fewer functions");

static pthread_mutex_t plans = PTHREAD_MUTEX_INITIALIZER;
static int chosen = -1;
static long until, left, injected; /* calls up to the first one; failures, of which -1 are endless */
static long calls[COUNT];          /* since then, of each function */
static VkResult chosen_result;

/* Whether this call is to fail, and with what */
static bool must_fail(int number, VkResult* result) {
  pthread_mutex_lock(&plans);
  calls[number]++;
  bool fails = number == chosen && left != 0 && --until <= 0;
  if (fails) {
    injected++;
    if (left > 0) left--;
    *result = chosen_result;
  }
  pthread_mutex_unlock(&plans);
  return fails;
}

VK_LAYER_EXPORT int hostile_fail(const char* name, long at, long times, int result) {
  int found = -1;
  for (int i = 0; name && i < COUNT; i++)
    if (!strcmp(names[i], name)) found = i;
  pthread_mutex_lock(&plans);
  chosen = found;
  until = at;
  left = times;
  injected = 0;
  memset(calls, 0, sizeof calls);
  chosen_result = (VkResult)result;
  pthread_mutex_unlock(&plans);
  return found >= 0;
}

static long read_count(const long* count) {
  pthread_mutex_lock(&plans);
  long found = *count;
  pthread_mutex_unlock(&plans);
  return found;
}

VK_LAYER_EXPORT long hostile_injected(void) { return read_count(&injected); }

VK_LAYER_EXPORT long hostile_calls(int number) { return read_count(&calls[number]); }

VK_LAYER_EXPORT const char* hostile_function(int number) { return names[number]; }

#define WRAP(name, parameters, arguments) \
  static VkResult hostile_##name parameters { \
    VkResult result; \
    if (must_fail(NUMBER_##name, &result)) return result; \
    return ((PFN_vk##name)device_of(of)->behind[NUMBER_##name]) arguments; \
  }
FAILING(WRAP)

#define FIND_FAILING(name, parameters, arguments) FIND(name)
PFN_vkVoidFunction failing_function(const char* name) { FAILING(FIND_FAILING) return NULL; }

/* With the other files' functions in the place of the driver's, where they have one */
void start_failures(struct device* device, PFN_vkVoidFunction (*find)(const char*)) {
  for (int i = 0; i < COUNT; i++) {
    char extended[64];
    device->behind[i] = find(names[i]);
    if (!device->behind[i]) device->behind[i] = device->lookup(device->handle, names[i]);
    if (device->behind[i]) continue;
    /* On a device of Vulkan 1.1 some are an extension's. */
    strcpy(extended, names[i]);
    strcat(extended, "KHR");
    device->behind[i] = device->lookup(device->handle, extended);
  }
}
