/* A cache of compiled pipelines, as drivers of GPUs have one: what it holds can be saved and given
 * to another process, and a pipeline that it holds is not compiled. Here it holds the digests of
 * pipelines. VKRT_HOSTILE_COUNTS=1 says on stderr how many a device compiled.
 *
 * VKRT_HOSTILE_MAX_SHADER=N stands for the registers that compilers run out of: what is made of a
 * module of more bytes is VK_ERROR_UNKNOWN, as Mesa's compiler for V3D says it. It may change while
 * a device is open. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "layer.h"

struct module {
  struct module* next;
  VkShaderModule handle;
  uint64_t digest, bytes;
  struct interface interface;
};

struct cache {
  size_t count;
  uint64_t digests[4096];
};

/* FNV-1a */
static uint64_t digest_of(uint64_t digest, const void* bytes, size_t count) {
  for (size_t i = 0; i < count; i++) digest = (digest ^ ((const uint8_t*)bytes)[i]) * 0x100000001b3;
  return digest;
}

void start_pipelines(struct device* device, VkPhysicalDevice physical) {
  ((PFN_vkGetPhysicalDeviceProperties)physical_function("vkGetPhysicalDeviceProperties"))(
      physical, &device->properties);
}

void close_pipelines(struct device* device) {
  if (getenv("VKRT_HOSTILE_COUNTS"))
    fprintf(stderr, "compiled %ld, from the cache %ld\n", device->compiled, device->found);
  while (device->modules) {
    struct module* next = device->modules->next;
    free(device->modules);
    device->modules = next;
  }
}

static VkResult VKAPI_CALL hostile_CreateShaderModule(
    VkDevice handle, const VkShaderModuleCreateInfo* info, const VkAllocationCallbacks* callbacks,
    VkShaderModule* made) {
  struct device* device = device_of(handle);
  VkResult result = device->CreateShaderModule(handle, info, callbacks, made);
  if (result != VK_SUCCESS) return result;
  struct module* module = malloc(sizeof *module);
  pthread_mutex_lock(&device->lock);
  *module = (struct module){device->modules, *made,
                            digest_of(0xcbf29ce484222325, info->pCode, info->codeSize),
                            info->codeSize,
                            interface_of(info->pCode, info->codeSize)};
  if (module->interface.packs_halves)
    fault(device, "a kernel packs halves with an instruction that rounds as the driver likes");
  device->modules = module;
  pthread_mutex_unlock(&device->lock);
  return VK_SUCCESS;
}

static void VKAPI_CALL hostile_DestroyShaderModule(VkDevice handle, VkShaderModule module,
                                                   const VkAllocationCallbacks* callbacks) {
  struct device* device = device_of(handle);
  pthread_mutex_lock(&device->lock);
  struct module** place = &device->modules;
  while (*place && (*place)->handle != module) place = &(*place)->next;
  struct module* gone = *place;
  if (gone) *place = gone->next;
  pthread_mutex_unlock(&device->lock);
  free(gone);
  device->DestroyShaderModule(handle, module, callbacks);
}

static const struct module* module_of(const struct device* device,
                                      const VkComputePipelineCreateInfo* info) {
  const struct module* module = device->modules;
  while (module && module->handle != info->stage.module) module = module->next;
  return module;
}

/* What the specialized code of a pipeline depends on; the lock is held. */
static uint64_t digest_of_pipeline(const struct device* device,
                                   const VkComputePipelineCreateInfo* info) {
  const struct module* module = module_of(device, info);
  uint64_t digest = module ? module->digest : 0;
  const VkSpecializationInfo* constants = info->stage.pSpecializationInfo;
  for (uint32_t i = 0; constants && i < constants->mapEntryCount; i++) {
    const VkSpecializationMapEntry* entry = constants->pMapEntries + i;
    digest = digest_of(digest, &entry->constantID, sizeof entry->constantID);
    digest = digest_of(digest, (const char*)constants->pData + entry->offset, entry->size);
  }
  return digest;
}

static VkResult VKAPI_CALL hostile_CreateComputePipelines(
    VkDevice handle, VkPipelineCache given, uint32_t count, const VkComputePipelineCreateInfo* infos,
    const VkAllocationCallbacks* callbacks, VkPipeline* made) {
  struct device* device = device_of(handle);
  struct cache* cache = (struct cache*)(uintptr_t)given;
  const char* most = getenv("VKRT_HOSTILE_MAX_SHADER");
  pthread_mutex_lock(&device->lock);
  for (uint32_t i = 0; i < count; i++) {
    const struct module* module = module_of(device, infos + i);
    if (most && module && module->bytes > strtoull(most, NULL, 10)) {
      pthread_mutex_unlock(&device->lock);
      for (i = 0; i < count; i++) made[i] = VK_NULL_HANDLE;
      return VK_ERROR_UNKNOWN;
    }
    uint64_t digest = digest_of_pipeline(device, infos + i);
    size_t place = 0;
    while (cache && place < cache->count && cache->digests[place] != digest) place++;
    if (cache && place < cache->count) {
      device->found++;
      continue;
    }
    device->compiled++;
    if (cache && place < sizeof cache->digests / sizeof *cache->digests)
      cache->digests[cache->count++] = digest;
  }
  pthread_mutex_unlock(&device->lock);
  VkResult result =
      device->CreateComputePipelines(handle, VK_NULL_HANDLE, count, infos, callbacks, made);
  pthread_mutex_lock(&device->lock);
  for (uint32_t i = 0; i < count && result == VK_SUCCESS; i++) {
    const struct module* module = module_of(device, infos + i);
    if (module) track_pipeline(device, made[i], module->interface);
  }
  pthread_mutex_unlock(&device->lock);
  return result;
}

/* The header that Vulkan prescribes for the data of caches */
static VkPipelineCacheHeaderVersionOne header_of(const struct device* device) {
  VkPipelineCacheHeaderVersionOne header = {
      .headerSize = sizeof header, .headerVersion = VK_PIPELINE_CACHE_HEADER_VERSION_ONE,
      .vendorID = device->properties.vendorID, .deviceID = device->properties.deviceID};
  memcpy(header.pipelineCacheUUID, device->properties.pipelineCacheUUID, VK_UUID_SIZE);
  return header;
}

static VkResult VKAPI_CALL hostile_CreatePipelineCache(
    VkDevice handle, const VkPipelineCacheCreateInfo* info, const VkAllocationCallbacks* callbacks,
    VkPipelineCache* made) {
  (void)callbacks;
  struct cache* cache = calloc(1, sizeof *cache);
  VkPipelineCacheHeaderVersionOne header = header_of(device_of(handle));
  size_t size = info->initialDataSize;
  if (size >= sizeof header && size <= sizeof header + sizeof cache->digests
      && !memcmp(info->pInitialData, &header, sizeof header)) {
    cache->count = (size - sizeof header) / sizeof *cache->digests;
    memcpy(cache->digests, (const char*)info->pInitialData + sizeof header,
           cache->count * sizeof *cache->digests);
  }
  *made = (VkPipelineCache)(uintptr_t)cache;
  return VK_SUCCESS;
}

static void VKAPI_CALL hostile_DestroyPipelineCache(VkDevice handle, VkPipelineCache cache,
                                                    const VkAllocationCallbacks* callbacks) {
  (void)handle, (void)callbacks;
  free((struct cache*)(uintptr_t)cache);
}

static VkResult VKAPI_CALL hostile_GetPipelineCacheData(VkDevice handle, VkPipelineCache given,
                                                        size_t* size, void* data) {
  struct device* device = device_of(handle);
  const struct cache* cache = (const struct cache*)(uintptr_t)given;
  VkPipelineCacheHeaderVersionOne header = header_of(device);
  pthread_mutex_lock(&device->lock);
  size_t bytes = cache->count * sizeof *cache->digests, room = *size;
  VkResult result = VK_SUCCESS;
  if (!data) {
    *size = sizeof header + bytes;
  } else if (room < sizeof header + bytes) {
    *size = 0;
    result = VK_INCOMPLETE;
  } else {
    memcpy(data, &header, sizeof header);
    memcpy((char*)data + sizeof header, cache->digests, bytes);
    *size = sizeof header + bytes;
  }
  pthread_mutex_unlock(&device->lock);
  return result;
}

PFN_vkVoidFunction pipeline_function(const char* name) {
  FUNCTION(name, CreateShaderModule);
  FUNCTION(name, DestroyShaderModule);
  FUNCTION(name, CreateComputePipelines);
  FUNCTION(name, CreatePipelineCache);
  FUNCTION(name, DestroyPipelineCache);
  FUNCTION(name, GetPipelineCacheData);
  return NULL;
}
