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

#include "tracking.h"

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
}

static VkResult hostile_CreateShaderModule(VkDevice handle, const VkShaderModuleCreateInfo* info,
                                           CALLBACKS, VkShaderModule* made) {
  struct device* device = device_of(handle);
  VkResult result = device->CreateShaderModule(handle, info, callbacks, made);
  if (result != VK_SUCCESS) return result;
  locked(device);
  struct object* module = OBJECT(device, MODULE, *made);
  module->digest = digest_of(0xcbf29ce484222325, info->pCode, info->codeSize);
  module->nbytes = info->codeSize;
  module->interface = interface_of(info->pCode, info->codeSize);
  if (module->interface.packs_halves)
    fault(device, "a kernel packs halves with an instruction that rounds as the driver likes");
  unlock(device);
  return VK_SUCCESS;
}

/* What the specialized code of a pipeline depends on */
static uint64_t digest_of_pipeline(const struct object* module,
                                   const VkSpecializationInfo* constants) {
  uint64_t digest = module->digest;
  for (uint32_t i = 0; constants && i < constants->mapEntryCount; i++) {
    const VkSpecializationMapEntry* entry = constants->pMapEntries + i;
    digest = digest_of(digest, &entry->constantID, sizeof entry->constantID);
    digest = digest_of(digest, (const char*)constants->pData + entry->offset, entry->size);
  }
  return digest;
}

static VkResult hostile_CreateComputePipelines(VkDevice handle, VkPipelineCache given,
                                               uint32_t count,
                                               const VkComputePipelineCreateInfo* infos, CALLBACKS,
                                               VkPipeline* made) {
  struct device* device = device_of(handle);
  struct cache* cache = (struct cache*)(uintptr_t)given;
  const char* most = getenv("VKRT_HOSTILE_MAX_SHADER");
  locked(device);
  for (uint32_t i = 0; i < count; i++) {
    const struct object* module = OBJECT(device, MODULE, infos[i].stage.module);
    if (most && module->nbytes > strtoull(most, NULL, 10)) {
      unlock(device);
      for (i = 0; i < count; i++) made[i] = VK_NULL_HANDLE;
      return VK_ERROR_UNKNOWN;
    }
    uint64_t digest = digest_of_pipeline(module, infos[i].stage.pSpecializationInfo);
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
  unlock(device);
  VkResult result =
      device->CreateComputePipelines(handle, VK_NULL_HANDLE, count, infos, callbacks, made);
  locked(device);
  for (uint32_t i = 0; i < count && result == VK_SUCCESS; i++)
    OBJECT(device, PIPELINE, made[i])->interface =
        OBJECT(device, MODULE, infos[i].stage.module)->interface;
  unlock(device);
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

static VkResult hostile_CreatePipelineCache(VkDevice handle, const VkPipelineCacheCreateInfo* info,
                                            CALLBACKS, VkPipelineCache* made) {
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

static void hostile_DestroyPipelineCache(VkDevice handle, VkPipelineCache cache, CALLBACKS) {
  (void)handle, (void)callbacks;
  free((struct cache*)(uintptr_t)cache);
}

static VkResult hostile_GetPipelineCacheData(VkDevice handle, VkPipelineCache given, size_t* size,
                                             void* data) {
  struct device* device = device_of(handle);
  const struct cache* cache = (const struct cache*)(uintptr_t)given;
  VkPipelineCacheHeaderVersionOne header = header_of(device);
  locked(device);
  size_t bytes = cache->count * sizeof *cache->digests, room = *size;
  VkResult result = VK_SUCCESS;
  *size = sizeof header + bytes;
  if (data && room < *size) {
    *size = 0;
    result = VK_INCOMPLETE;
  } else if (data) {
    memcpy(data, &header, sizeof header);
    memcpy((char*)data + sizeof header, cache->digests, bytes);
  }
  unlock(device);
  return result;
}

#define FUNCTIONS(X) \
  X(CreateShaderModule) X(CreateComputePipelines) X(CreatePipelineCache) X(DestroyPipelineCache) \
  X(GetPipelineCacheData)
FINDER(pipeline_function, FUNCTIONS)
