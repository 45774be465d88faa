/* VK_LAYER_VKRT_pipelines: what the driver's compiler says of every compute pipeline, one line of JSON each.
 *
 * VKRT_PIPELINES is the file that they are added to. A driver without
 * VK_KHR_pipeline_executable_properties, or with few, may print its figures instead
 * (BIFROST_MESA_DEBUG=shaderdb): with VKRT_PIPELINES_PRINTED the line has what it wrote to stderr
 * meanwhile. Pipelines are made one after the other for that. With VKRT_PIPELINES_CODE the line has
 * the last of the compiler's internal representations of each executable, the assembly.
 * For programs with one instance and one driver, such as compilers/drivers.py runs; vkrt opens a
 * second device for trials. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include <vulkan/vk_layer.h>
#include <vulkan/vulkan.h>

#define STATISTICS VK_KHR_PIPELINE_EXECUTABLE_PROPERTIES_EXTENSION_NAME
#define MODULES 4096
#define EXECUTABLES 8
#define FIGURES 64
#define CODES 8

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static VkInstance instance;
static PFN_vkGetInstanceProcAddr next_instance;
static PFN_vkGetDeviceProcAddr next_device;
static bool has_statistics;
static struct {
  VkShaderModule module;
  uint64_t digest;
  size_t size;
} modules[MODULES];
static int module_count;

/* Looked up once: loaders do not look up in several threads at a time. */
#define EACH(F) F(CreateShaderModule) F(CreateComputePipelines) F(GetPipelineExecutablePropertiesKHR) \
  F(GetPipelineExecutableStatisticsKHR) F(GetPipelineExecutableInternalRepresentationsKHR)
#define FIELD(name) PFN_vk##name name;
static struct {
  EACH(FIELD)
} vk;

/* FNV-1a, which compilers/statistics.py computes too */
static uint64_t digest_of(const unsigned char* bytes, size_t size) {
  uint64_t digest = 14695981039346656037u;
  for (size_t i = 0; i < size; i++) digest = (digest ^ bytes[i]) * 1099511628211u;
  return digest;
}

static VkResult VKAPI_CALL CreateShaderModule(VkDevice of, const VkShaderModuleCreateInfo* info,
                                              const VkAllocationCallbacks* callbacks, VkShaderModule* made) {
  VkResult result = vk.CreateShaderModule(of, info, callbacks, made);
  if (result) return result;
  pthread_mutex_lock(&lock);
  int at = 0; /* a handle may come back for another module */
  while (at < module_count && modules[at].module != *made) at++;
  if (at < MODULES) {
    modules[at].module = *made;
    modules[at].digest = digest_of((const unsigned char*)info->pCode, info->codeSize);
    modules[at].size = info->codeSize;
    if (at == module_count) module_count++;
  }
  pthread_mutex_unlock(&lock);
  return result;
}

static void put_text(FILE* file, const char* text) {
  fputc('"', file);
  for (; *text; text++) {
    if (*text == '"' || *text == '\\') fputc('\\', file);
    if (*text == '\n') fputs("\\n", file);
    else if (*text >= ' ' && *text < 127) fputc(*text, file);
  }
  fputc('"', file);
}

static void put_code(FILE* file, VkDevice device, const VkPipelineExecutableInfoKHR* which) {
  VkPipelineExecutableInternalRepresentationKHR codes[CODES];
  memset(codes, 0, sizeof codes);
  for (int i = 0; i < CODES; i++)
    codes[i].sType = VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_INTERNAL_REPRESENTATION_KHR;
  uint32_t count = CODES;
  if (vk.GetPipelineExecutableInternalRepresentationsKHR(device, which, &count, codes) < 0 || !count) return;
  VkPipelineExecutableInternalRepresentationKHR* last = &codes[count - 1];
  char* text = last->pData = calloc(last->dataSize + 1, 1);
  if (text && vk.GetPipelineExecutableInternalRepresentationsKHR(device, which, &count, codes) >= 0) {
    fputs(", \"code\": ", file);
    put_text(file, text);
  }
  free(text);
}

static void put_figures(FILE* file, VkDevice device, VkPipeline pipeline) {
  VkPipelineInfoKHR about = {VK_STRUCTURE_TYPE_PIPELINE_INFO_KHR, NULL, pipeline};
  /* Not on the stack: a thread may have a small one. `lock` is held. */
  static VkPipelineExecutablePropertiesKHR executables[EXECUTABLES];
  static VkPipelineExecutableStatisticKHR figures[FIGURES];
  uint32_t count = EXECUTABLES;
  for (int i = 0; i < EXECUTABLES; i++)
    executables[i].sType = VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_PROPERTIES_KHR;
  if (vk.GetPipelineExecutablePropertiesKHR(device, &about, &count, executables) < 0) return;
  for (uint32_t i = 0; i < count; i++) {
    VkPipelineExecutableInfoKHR which = {VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_INFO_KHR, NULL, pipeline, i};
    uint32_t number = FIGURES;
    for (int j = 0; j < FIGURES; j++) figures[j].sType = VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_STATISTIC_KHR;
    if (vk.GetPipelineExecutableStatisticsKHR(device, &which, &number, figures) < 0) number = 0;
    fprintf(file, "%s{\"subgroup\": %u", i ? ", " : "", executables[i].subgroupSize);
    for (uint32_t j = 0; j < number; j++) {
      fputs(", ", file);
      put_text(file, figures[j].name);
      fputs(": ", file);
      if (figures[j].format == VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_FLOAT64_KHR)
        fprintf(file, "%g", figures[j].value.f64);
      else if (figures[j].format == VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_INT64_KHR)
        fprintf(file, "%lld", (long long)figures[j].value.i64);
      else if (figures[j].format == VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_UINT64_KHR)
        fprintf(file, "%llu", (unsigned long long)figures[j].value.u64);
      else fprintf(file, "%u", figures[j].value.b32);
    }
    if (getenv("VKRT_PIPELINES_CODE")) put_code(file, device, &which);
    fputc('}', file);
  }
}

static void put_line(VkDevice device, const VkComputePipelineCreateInfo* info, VkPipeline pipeline,
                     VkResult result, double cpu, const char* said) {
  const char* path = getenv("VKRT_PIPELINES");
  FILE* file = path ? fopen(path, "a") : NULL;
  if (!file) return;
  int at = 0;
  while (at < module_count && modules[at].module != info->stage.module) at++;
  fprintf(file, "{\"module\": \"%016llx\", \"nbytes\": %zu, \"result\": %d, \"cpu_ms\": %.3f, \"constants\": [",
          at < module_count ? (unsigned long long)modules[at].digest : 0,
          at < module_count ? modules[at].size : 0, result, cpu);
  const VkSpecializationInfo* constants = info->stage.pSpecializationInfo;
  for (uint32_t i = 0; constants && i < constants->mapEntryCount; i++) {
    int32_t value = 0;
    const VkSpecializationMapEntry* entry = &constants->pMapEntries[i];
    memcpy(&value, (const char*)constants->pData + entry->offset, entry->size < 4 ? entry->size : 4);
    fprintf(file, "%s[%u, %d]", i ? ", " : "", entry->constantID, value);
  }
  fputs("], \"executables\": [", file);
  if (!result && has_statistics) put_figures(file, device, pipeline);
  fputs("], \"said\": ", file);
  put_text(file, said);
  fputs("}\n", file);
  fclose(file);
}

static double cpu_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return now.tv_sec * 1e3 + now.tv_nsec * 1e-6;
}

static VkResult make(VkDevice device, VkPipelineCache cache, const VkComputePipelineCreateInfo* given,
                     const VkAllocationCallbacks* callbacks, VkPipeline* made) {
  VkComputePipelineCreateInfo info = *given;
  static char said[4096]; /* `lock` is held */
  memset(said, 0, sizeof said);
  bool catches = getenv("VKRT_PIPELINES_PRINTED");
  int own = catches ? dup(2) : -1, caught = catches ? memfd_create("said", MFD_CLOEXEC) : -1;
  if (has_statistics) info.flags |= VK_PIPELINE_CREATE_CAPTURE_STATISTICS_BIT_KHR;
  if (has_statistics && getenv("VKRT_PIPELINES_CODE"))
    info.flags |= VK_PIPELINE_CREATE_CAPTURE_INTERNAL_REPRESENTATIONS_BIT_KHR;
  fflush(stderr);
  if (catches) dup2(caught, 2);
  double before = cpu_ms();
  VkResult result = vk.CreateComputePipelines(device, cache, 1, &info, callbacks, made);
  double cpu = cpu_ms() - before;
  fflush(stderr);
  if (catches) {
    dup2(own, 2);
    close(own);
    if (pread(caught, said, sizeof said - 1, 0) < 0) said[0] = 0;
    close(caught);
  }
  put_line(device, &info, *made, result, cpu, said);
  return result;
}

static VkResult VKAPI_CALL CreateComputePipelines(VkDevice of, VkPipelineCache cache, uint32_t count,
                                                  const VkComputePipelineCreateInfo* infos,
                                                  const VkAllocationCallbacks* callbacks, VkPipeline* made) {
  VkResult worst = VK_SUCCESS;
  for (uint32_t i = 0; i < count; i++) {
    made[i] = VK_NULL_HANDLE;
    pthread_mutex_lock(&lock);
    VkResult result = make(of, cache, &infos[i], callbacks, &made[i]);
    pthread_mutex_unlock(&lock);
    if (result) worst = result;
  }
  return worst;
}

static VkResult VKAPI_CALL CreateInstance(const VkInstanceCreateInfo* info,
                                          const VkAllocationCallbacks* callbacks, VkInstance* made) {
  VkLayerInstanceCreateInfo* link = (VkLayerInstanceCreateInfo*)info->pNext;
  while (link && !(link->sType == VK_STRUCTURE_TYPE_LOADER_INSTANCE_CREATE_INFO
                   && link->function == VK_LAYER_LINK_INFO))
    link = (VkLayerInstanceCreateInfo*)link->pNext;
  if (!link) return VK_ERROR_INITIALIZATION_FAILED;
  next_instance = link->u.pLayerInfo->pfnNextGetInstanceProcAddr;
  link->u.pLayerInfo = link->u.pLayerInfo->pNext;
  VkResult result = ((PFN_vkCreateInstance)next_instance(NULL, "vkCreateInstance"))(info, callbacks, made);
  if (!result) instance = *made;
  return result;
}

static bool offers_statistics(VkPhysicalDevice physical) {
  PFN_vkEnumerateDeviceExtensionProperties list = (PFN_vkEnumerateDeviceExtensionProperties)next_instance(
      instance, "vkEnumerateDeviceExtensionProperties");
  uint32_t count = 0;
  bool found = false;
  list(physical, NULL, &count, NULL);
  VkExtensionProperties* names = calloc(count + 1, sizeof *names);
  if (names && list(physical, NULL, &count, names) == VK_SUCCESS)
    for (uint32_t i = 0; i < count; i++) found |= !strcmp(names[i].extensionName, STATISTICS);
  free(names);
  return found;
}

static VkResult VKAPI_CALL CreateDevice(VkPhysicalDevice physical, const VkDeviceCreateInfo* given,
                                        const VkAllocationCallbacks* callbacks, VkDevice* made) {
  VkLayerDeviceCreateInfo* link = (VkLayerDeviceCreateInfo*)given->pNext;
  while (link && !(link->sType == VK_STRUCTURE_TYPE_LOADER_DEVICE_CREATE_INFO
                   && link->function == VK_LAYER_LINK_INFO))
    link = (VkLayerDeviceCreateInfo*)link->pNext;
  if (!link) return VK_ERROR_INITIALIZATION_FAILED;
  PFN_vkCreateDevice create = (PFN_vkCreateDevice)link->u.pLayerInfo->pfnNextGetInstanceProcAddr(
      instance, "vkCreateDevice");
  next_device = link->u.pLayerInfo->pfnNextGetDeviceProcAddr;
  link->u.pLayerInfo = link->u.pLayerInfo->pNext;
  VkDeviceCreateInfo info = *given;
  VkPhysicalDevicePipelineExecutablePropertiesFeaturesKHR feature = {
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PIPELINE_EXECUTABLE_PROPERTIES_FEATURES_KHR, (void*)info.pNext, VK_TRUE};
  const char** names = calloc(info.enabledExtensionCount + 1, sizeof *names);
  if (!names) return VK_ERROR_OUT_OF_HOST_MEMORY;
  has_statistics = offers_statistics(physical);
  if (has_statistics) {
    if (info.enabledExtensionCount)
      memcpy(names, info.ppEnabledExtensionNames, info.enabledExtensionCount * sizeof *names);
    names[info.enabledExtensionCount++] = STATISTICS;
    info.ppEnabledExtensionNames = names;
    info.pNext = &feature;
  }
  VkResult result = create(physical, &info, callbacks, made);
  free(names);
  if (result) return result;
#define LOOK_UP(name) vk.name = (PFN_vk##name)next_device(*made, "vk" #name);
  EACH(LOOK_UP)
  return VK_SUCCESS;
}

static PFN_vkVoidFunction VKAPI_CALL of_device(VkDevice of, const char* name);
static PFN_vkVoidFunction VKAPI_CALL of_instance(VkInstance of, const char* name);

static PFN_vkVoidFunction own(const char* name) {
#define OWN(function) if (!strcmp(name, "vk" #function)) return (PFN_vkVoidFunction)function;
  OWN(CreateInstance) OWN(CreateDevice) OWN(CreateShaderModule) OWN(CreateComputePipelines)
  if (!strcmp(name, "vkGetInstanceProcAddr")) return (PFN_vkVoidFunction)of_instance;
  if (!strcmp(name, "vkGetDeviceProcAddr")) return (PFN_vkVoidFunction)of_device;
  return NULL;
}

static PFN_vkVoidFunction VKAPI_CALL of_device(VkDevice of, const char* name) {
  PFN_vkVoidFunction found = own(name);
  return found ? found : next_device(of, name);
}

static PFN_vkVoidFunction VKAPI_CALL of_instance(VkInstance of, const char* name) {
  PFN_vkVoidFunction found = own(name);
  return found ? found : next_instance(of, name);
}

__attribute__((visibility("default"))) VkResult VKAPI_CALL
vkNegotiateLoaderLayerInterfaceVersion(VkNegotiateLayerInterface* version) {
  version->loaderLayerInterfaceVersion = 2;
  version->pfnGetInstanceProcAddr = of_instance;
  version->pfnGetDeviceProcAddr = of_device;
  version->pfnGetPhysicalDeviceProcAddr = NULL;
  return VK_SUCCESS;
}
