/* The layer's entry, and the chains of functions: which ones it takes, and who is behind it. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "layer.h"

static pthread_mutex_t lists = PTHREAD_MUTEX_INITIALIZER;
static struct node *instances, *devices;

static void* key_of(const void* handle) { return *(void* const*)handle; }

static void* find(struct node* const* list, const void* handle) {
  pthread_mutex_lock(&lists);
  struct node* found = *list;
  while (found && found->key != key_of(handle)) found = found->next;
  pthread_mutex_unlock(&lists);
  return found;
}

static void insert(struct node** list, struct node* made) {
  pthread_mutex_lock(&lists);
  made->next = *list;
  *list = made;
  pthread_mutex_unlock(&lists);
}

static void take_out(struct node** list, struct node* gone) {
  pthread_mutex_lock(&lists);
  while (*list != gone) list = &(*list)->next;
  *list = gone->next;
  pthread_mutex_unlock(&lists);
}

struct instance* instance_of(const void* handle) { return find(&instances, handle); }

struct device* device_of(const void* handle) { return find(&devices, handle); }

void* in_chain(const void* chain, VkStructureType type) {
  const VkBaseInStructure* each = chain;
  while (each && each->sType != type) each = each->pNext;
  return (void*)each;
}

bool is_name_of(const char* name, const char* function) {
  size_t length = strlen(function);
  return !strncmp(name, function, length) && (!name[length] || !strcmp(name + length, "KHR"));
}

void fault(struct device* device, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  fprintf(stderr, "hostile: ");
  vfprintf(stderr, format, arguments);
  fprintf(stderr, "\n");
  va_end(arguments);
  device->lost = true;
}

/* What the loader says of the layer behind this one, in a chain of an instance or of a device: both
 * structures begin alike. NULL where it says nothing. */
static void* link_in(const void* chain, VkStructureType type) {
  VkLayerInstanceCreateInfo* found = in_chain(chain, type);
  while (found && found->function != VK_LAYER_LINK_INFO) found = in_chain(found->pNext, type);
  return found;
}

static VkResult hostile_CreateInstance(const VkInstanceCreateInfo* info, CALLBACKS,
                                       VkInstance* made) {
  read_profile();
  VkLayerInstanceCreateInfo* link =
      link_in(info->pNext, VK_STRUCTURE_TYPE_LOADER_INSTANCE_CREATE_INFO);
  if (!link) return VK_ERROR_INITIALIZATION_FAILED;
  PFN_vkGetInstanceProcAddr lookup = link->u.pLayerInfo->pfnNextGetInstanceProcAddr;
  link->u.pLayerInfo = link->u.pLayerInfo->pNext;
  PFN_vkCreateInstance create = (PFN_vkCreateInstance)lookup(NULL, "vkCreateInstance");
  VkResult result = create(info, callbacks, made);
  if (result != VK_SUCCESS) return result;
  struct instance* instance = calloc(1, sizeof *instance);
  instance->node.key = key_of(*made);
  instance->handle = *made;
  instance->lookup = lookup;
#define LOAD(name) instance->name = (PFN_vk##name)lookup(*made, "vk" #name);
  INSTANCE_FUNCTIONS(LOAD)
#undef LOAD
  insert(&instances, &instance->node);
  return VK_SUCCESS;
}

static void hostile_DestroyInstance(VkInstance handle, CALLBACKS) {
  if (!handle) return;
  struct instance* instance = instance_of(handle);
  take_out(&instances, &instance->node);
  instance->DestroyInstance(handle, callbacks);
  free(instance);
}

static PFN_vkVoidFunction of_device(const char* name);

static VkResult hostile_CreateDevice(VkPhysicalDevice physical, const VkDeviceCreateInfo* info,
                                     CALLBACKS, VkDevice* made) {
  struct instance* instance = instance_of(physical);
  const char* missing = refused_feature(info);
  if (missing) {
    fprintf(stderr, "hostile: the device has no feature %s\n", missing);
    return VK_ERROR_FEATURE_NOT_PRESENT;
  }
  for (uint32_t i = 0; i < info->enabledExtensionCount; i++)
    if (!is_listed(profile.extensions, profile.extension_count, info->ppEnabledExtensionNames[i])) {
      fprintf(stderr, "hostile: the device has no %s\n", info->ppEnabledExtensionNames[i]);
      return VK_ERROR_EXTENSION_NOT_PRESENT;
    }
  VkLayerDeviceCreateInfo* link =
      link_in(info->pNext, VK_STRUCTURE_TYPE_LOADER_DEVICE_CREATE_INFO);
  if (!link) return VK_ERROR_INITIALIZATION_FAILED;
  PFN_vkGetDeviceProcAddr lookup = link->u.pLayerInfo->pfnNextGetDeviceProcAddr;
  PFN_vkCreateDevice create = (PFN_vkCreateDevice)link->u.pLayerInfo->pfnNextGetInstanceProcAddr(
      instance->handle, "vkCreateDevice");
  link->u.pLayerInfo = link->u.pLayerInfo->pNext;
  float priority = 1;
  VkDeviceQueueCreateInfo queue = {.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
                                   .queueCount = 1, .pQueuePriorities = &priority};
  VkDeviceCreateInfo changed = *info;
  changed.queueCreateInfoCount = 1;
  changed.pQueueCreateInfos = &queue;
  VkResult result = create(physical, &changed, callbacks, made);
  if (result != VK_SUCCESS) return result;
  struct device* device = calloc(1, sizeof *device);
  device->node.key = key_of(*made);
  device->handle = *made;
  device->lookup = lookup;
#define LOAD(name) device->name = (PFN_vk##name)lookup(*made, "vk" #name);
  DEVICE_FUNCTIONS(LOAD)
#undef LOAD
  /* On a device of Vulkan 1.1 these are an extension's. */
#define EITHER(name) \
  if (!device->name) device->name = (PFN_vk##name)lookup(*made, "vk" #name "KHR");
  EITHER(WaitSemaphores) EITHER(SignalSemaphore)
#undef EITHER
  pthread_mutex_init(&device->lock, NULL);
  pthread_mutex_init(&device->queue_lock, NULL);
  VkPhysicalDeviceMemoryProperties real;
  instance->GetPhysicalDeviceMemoryProperties(physical, &real);
  start_memory(device, &real);
  start_queues(device);
  start_pipelines(device, physical);
  start_tracking(device);
  start_failures(device, of_device);
  insert(&devices, &device->node);
  return VK_SUCCESS;
}

static void hostile_DestroyDevice(VkDevice handle, CALLBACKS) {
  if (!handle) return;
  struct device* device = device_of(handle);
  if (device->memories)
    fprintf(stderr, "hostile: %u allocations were not freed\n", device->allocations);
  take_out(&devices, &device->node);
  device->DestroyDevice(handle, callbacks);
  close_pipelines(device);
  close_tracking(device);
  free(device->awaited);
  free(device);
}

static PFN_vkVoidFunction hostile_GetDeviceProcAddr(VkDevice, const char*);
static PFN_vkVoidFunction hostile_GetInstanceProcAddr(VkInstance, const char*);

static PFN_vkVoidFunction of_device(const char* name) {
  FIND(GetDeviceProcAddr)
  FIND(DestroyDevice)
  PFN_vkVoidFunction found = memory_function(name) ?: queue_function(name) ?: limit_function(name)
                             ?: pipeline_function(name) ?: tracking_function(name);
  return found || !profile.reorders ? found : order_function(name) ?: image_function(name);
}

static PFN_vkVoidFunction hostile_GetDeviceProcAddr(VkDevice handle, const char* name) {
  PFN_vkVoidFunction behind = device_of(handle)->lookup(handle, name);
  return behind ? failing_function(name) ?: of_device(name) ?: behind : NULL;
}

static PFN_vkVoidFunction hostile_GetInstanceProcAddr(VkInstance handle, const char* name) {
  FIND(GetInstanceProcAddr)
  FIND(CreateInstance)
  FIND(DestroyInstance)
  FIND(CreateDevice)
  if (!handle) return NULL;
  PFN_vkVoidFunction behind = instance_of(handle)->lookup(handle, name);
  if (!behind) return NULL;
  return physical_function(name) ?: failing_function(name) ?: of_device(name) ?: behind;
}

VK_LAYER_EXPORT VKAPI_ATTR VkResult VKAPI_CALL
vkNegotiateLoaderLayerInterfaceVersion(VkNegotiateLayerInterface* version) {
  version->loaderLayerInterfaceVersion = CURRENT_LOADER_LAYER_INTERFACE_VERSION;
  version->pfnGetInstanceProcAddr = hostile_GetInstanceProcAddr;
  version->pfnGetDeviceProcAddr = hostile_GetDeviceProcAddr;
  version->pfnGetPhysicalDeviceProcAddr = NULL;
  return VK_SUCCESS;
}
