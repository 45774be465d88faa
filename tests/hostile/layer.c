/* The layer's entry, and the chains of functions: which ones it takes, and who is behind it. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "layer.h"

static pthread_mutex_t lists = PTHREAD_MUTEX_INITIALIZER;
static struct instance* instances;
static struct device* devices;

/* What is dispatched begins with the address of its table, the same for all of an instance (or of
 * a device). */
static void* key_of(const void* handle) { return *(void* const*)handle; }

struct instance* instance_of(const void* handle) {
  pthread_mutex_lock(&lists);
  struct instance* found = instances;
  while (found && found->key != key_of(handle)) found = found->next;
  pthread_mutex_unlock(&lists);
  return found;
}

struct device* device_of(const void* handle) {
  pthread_mutex_lock(&lists);
  struct device* found = devices;
  while (found && found->key != key_of(handle)) found = found->next;
  pthread_mutex_unlock(&lists);
  return found;
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

static VkResult VKAPI_CALL hostile_CreateInstance(
    const VkInstanceCreateInfo* info, const VkAllocationCallbacks* callbacks, VkInstance* made) {
  read_profile();
  VkLayerInstanceCreateInfo* chain = (VkLayerInstanceCreateInfo*)info->pNext;
  while (chain && !(chain->sType == VK_STRUCTURE_TYPE_LOADER_INSTANCE_CREATE_INFO
                    && chain->function == VK_LAYER_LINK_INFO))
    chain = (VkLayerInstanceCreateInfo*)chain->pNext;
  if (!chain) return VK_ERROR_INITIALIZATION_FAILED;
  PFN_vkGetInstanceProcAddr lookup = chain->u.pLayerInfo->pfnNextGetInstanceProcAddr;
  chain->u.pLayerInfo = chain->u.pLayerInfo->pNext;
  PFN_vkCreateInstance create = (PFN_vkCreateInstance)lookup(NULL, "vkCreateInstance");
  VkResult result = create(info, callbacks, made);
  if (result != VK_SUCCESS) return result;
  struct instance* instance = calloc(1, sizeof *instance);
  instance->key = key_of(*made);
  instance->handle = *made;
  instance->lookup = lookup;
#define LOAD(name) instance->name = (PFN_vk##name)lookup(*made, "vk" #name);
  INSTANCE_FUNCTIONS(LOAD)
#undef LOAD
  pthread_mutex_lock(&lists);
  instance->next = instances;
  instances = instance;
  pthread_mutex_unlock(&lists);
  return VK_SUCCESS;
}

static void VKAPI_CALL hostile_DestroyInstance(VkInstance handle,
                                                     const VkAllocationCallbacks* callbacks) {
  if (!handle) return;
  struct instance* instance = instance_of(handle);
  pthread_mutex_lock(&lists);
  struct instance** place = &instances;
  while (*place != instance) place = &(*place)->next;
  *place = instance->next;
  pthread_mutex_unlock(&lists);
  instance->DestroyInstance(handle, callbacks);
  free(instance);
}

static PFN_vkVoidFunction of_device(const char* name);

static VkResult VKAPI_CALL hostile_CreateDevice(
    VkPhysicalDevice physical, const VkDeviceCreateInfo* info,
    const VkAllocationCallbacks* callbacks, VkDevice* made) {
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
  VkLayerDeviceCreateInfo* chain = (VkLayerDeviceCreateInfo*)info->pNext;
  while (chain && !(chain->sType == VK_STRUCTURE_TYPE_LOADER_DEVICE_CREATE_INFO
                    && chain->function == VK_LAYER_LINK_INFO))
    chain = (VkLayerDeviceCreateInfo*)chain->pNext;
  if (!chain) return VK_ERROR_INITIALIZATION_FAILED;
  PFN_vkGetDeviceProcAddr lookup = chain->u.pLayerInfo->pfnNextGetDeviceProcAddr;
  PFN_vkCreateDevice create = (PFN_vkCreateDevice)chain->u.pLayerInfo->pfnNextGetInstanceProcAddr(
      instance->handle, "vkCreateDevice");
  chain->u.pLayerInfo = chain->u.pLayerInfo->pNext;
  float priority = 1;
  VkDeviceQueueCreateInfo queue = {.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
                                   .queueCount = 1, .pQueuePriorities = &priority};
  VkDeviceCreateInfo changed = *info;
  changed.queueCreateInfoCount = 1;
  changed.pQueueCreateInfos = &queue;
  VkResult result = create(physical, &changed, callbacks, made);
  if (result != VK_SUCCESS) return result;
  struct device* device = calloc(1, sizeof *device);
  device->key = key_of(*made);
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
  pthread_mutex_lock(&lists);
  device->next = devices;
  devices = device;
  pthread_mutex_unlock(&lists);
  return VK_SUCCESS;
}

static void VKAPI_CALL hostile_DestroyDevice(VkDevice handle,
                                                   const VkAllocationCallbacks* callbacks) {
  if (!handle) return;
  struct device* device = device_of(handle);
  if (device->memories)
    fprintf(stderr, "hostile: %u allocations were not freed\n", device->allocations);
  pthread_mutex_lock(&lists);
  struct device** place = &devices;
  while (*place != device) place = &(*place)->next;
  *place = device->next;
  pthread_mutex_unlock(&lists);
  device->DestroyDevice(handle, callbacks);
  close_orders(device);
  close_images(device);
  close_pipelines(device);
  close_tracking(device);
  free(device->awaited);
  free(device);
}

static PFN_vkVoidFunction VKAPI_CALL hostile_GetDeviceProcAddr(VkDevice, const char*);
static PFN_vkVoidFunction VKAPI_CALL hostile_GetInstanceProcAddr(VkInstance, const char*);

static PFN_vkVoidFunction of_device(const char* name) {
  FUNCTION(name, GetDeviceProcAddr);
  FUNCTION(name, DestroyDevice);
  PFN_vkVoidFunction found = memory_function(name);
  if (!found) found = queue_function(name);
  if (!found) found = order_function(name);
  if (!found) found = image_function(name);
  if (!found) found = limit_function(name);
  if (!found) found = pipeline_function(name);
  if (!found) found = tracking_function(name);
  return found;
}

static PFN_vkVoidFunction VKAPI_CALL hostile_GetDeviceProcAddr(VkDevice handle,
                                                                     const char* name) {
  PFN_vkVoidFunction behind = device_of(handle)->lookup(handle, name);
  PFN_vkVoidFunction found = behind ? failing_function(name) : NULL;
  if (behind && !found) found = of_device(name);
  return found ? found : behind;
}

static PFN_vkVoidFunction VKAPI_CALL hostile_GetInstanceProcAddr(VkInstance handle,
                                                                       const char* name) {
  FUNCTION(name, GetInstanceProcAddr);
  FUNCTION(name, CreateInstance);
  FUNCTION(name, DestroyInstance);
  FUNCTION(name, CreateDevice);
  if (!handle) return NULL;
  PFN_vkVoidFunction behind = instance_of(handle)->lookup(handle, name);
  PFN_vkVoidFunction found = behind ? physical_function(name) : NULL;
  if (behind && !found) found = failing_function(name);
  if (behind && !found) found = of_device(name);
  return found ? found : behind;
}

VK_LAYER_EXPORT VKAPI_ATTR VkResult VKAPI_CALL
vkNegotiateLoaderLayerInterfaceVersion(VkNegotiateLayerInterface* version) {
  version->loaderLayerInterfaceVersion = CURRENT_LOADER_LAYER_INTERFACE_VERSION;
  version->pfnGetInstanceProcAddr = hostile_GetInstanceProcAddr;
  version->pfnGetDeviceProcAddr = hostile_GetDeviceProcAddr;
  version->pfnGetPhysicalDeviceProcAddr = NULL;
  return VK_SUCCESS;
}
