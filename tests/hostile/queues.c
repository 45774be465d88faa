/* The device's queues, all of them the driver's one, and how the device is lost: at the submission
 * that VKRT_HOSTILE_LOSE_AT counts (from 1, of each device), or with host memory imported where the
 * profile says so. With VKRT_HOSTILE_LOSE_LATE=1 that submission seems to succeed. */
#include <stdlib.h>
#include <string.h>

#include "layer.h"

/* So long, in nanoseconds, work of before may take until it is let go by force */
#define PATIENCE 200000000ull

void start_queues(struct device* device) {
  const char* at = getenv("VKRT_HOSTILE_LOSE_AT");
  const char* late = getenv("VKRT_HOSTILE_LOSE_LATE");
  device->lose_at = at ? atol(at) : 0;
  device->lose_at_wait = late && !strcmp(late, "1");
  device->GetDeviceQueue(device->handle, 0, 0, &device->real_queue);
  for (int i = 0; i < MAX_FAMILIES; i++) {
    device->queues[i].loader = device->node.key;
    device->queues[i].device = device;
  }
}

static void hostile_GetDeviceQueue(VkDevice handle, uint32_t family, uint32_t index,
                                   VkQueue* queue) {
  (void)index;
  *queue = (VkQueue)&device_of(handle)->queues[family];
}

static void hostile_GetDeviceQueue2(VkDevice handle, const VkDeviceQueueInfo2* info,
                                    VkQueue* queue) {
  hostile_GetDeviceQueue(handle, info->queueFamilyIndex, info->queueIndex, queue);
}

static struct device* of_queue(VkQueue queue) { return ((struct queue*)queue)->device; }

/* Keeps what a submission waits for: (with the lock of the queues) */
static void note_waits(struct device* device, const VkSubmitInfo* info) {
  const VkTimelineSemaphoreSubmitInfo* values =
      in_chain(info->pNext, VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO);
  for (uint32_t i = 0; values && i < info->waitSemaphoreCount; i++) {
    device->awaited = grown(device->awaited, device->awaited_count, sizeof *device->awaited);
    device->awaited[device->awaited_count++] =
        (struct awaited){info->pWaitSemaphores[i], values->pWaitSemaphoreValues[i]};
  }
}

/* Work of before ends, so that everything may be destroyed: what it waits for comes by force. */
static VkResult lose(struct device* device) {
  device->lost = true;
  for (int i = 0; i < device->awaited_count; i++) {
    struct awaited* a = &device->awaited[i];
    VkSemaphoreWaitInfo wait = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO, .semaphoreCount = 1,
                                .pSemaphores = &a->semaphore, .pValues = &a->value};
    VkSemaphoreSignalInfo raise = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_SIGNAL_INFO,
                                   .semaphore = a->semaphore, .value = a->value};
    if (device->WaitSemaphores(device->handle, &wait, PATIENCE) == VK_TIMEOUT)
      device->SignalSemaphore(device->handle, &raise);
  }
  device->awaited_count = 0;
  device->QueueWaitIdle(device->real_queue);
  return VK_ERROR_DEVICE_LOST;
}

static VkResult hostile_QueueSubmit(VkQueue queue, uint32_t count, const VkSubmitInfo* infos,
                                    VkFence fence) {
  struct device* device = of_queue(queue);
  pthread_mutex_lock(&device->queue_lock);
  VkResult result = VK_SUCCESS;
  device->submissions++;
  if (device->lost) {
    result = VK_ERROR_DEVICE_LOST;
  } else if (device->submissions == device->lose_at
             || (device->imports && profile.imports == IMPORTS_LOST)) {
    result = lose(device);
    if (device->lose_at_wait) result = VK_SUCCESS;
  } else {
    int number = (struct queue*)queue - device->queues;
    for (uint32_t i = 0; i < count; i++) {
      note_waits(device, &infos[i]);
      track_submission(device, number, &infos[i]);
    }
    if (fence) track_fence(device, number, fence);
    result = device->lost ? lose(device)
                          : device->QueueSubmit(device->real_queue, count, infos, fence);
  }
  pthread_mutex_unlock(&device->queue_lock);
  return result;
}

static VkResult hostile_QueueWaitIdle(VkQueue queue) {
  struct device* device = of_queue(queue);
  if (device->lost) return VK_ERROR_DEVICE_LOST;
  pthread_mutex_lock(&device->queue_lock);
  VkResult result = device->QueueWaitIdle(device->real_queue);
  if (result == VK_SUCCESS) waited_for_all(device);
  pthread_mutex_unlock(&device->queue_lock);
  return result;
}

/* What a wait says that may have been under way when the device was lost */
static VkResult ended(struct device* device, VkResult result) {
  return device->lost ? VK_ERROR_DEVICE_LOST : result;
}

static VkResult hostile_DeviceWaitIdle(VkDevice handle) {
  struct device* device = device_of(handle);
  if (device->lost) return VK_ERROR_DEVICE_LOST;
  VkResult result = device->DeviceWaitIdle(handle);
  if (result == VK_SUCCESS) waited_for_all(device);
  return ended(device, result);
}

/* Waits are done in slices: the device may be lost meanwhile, and no fence of it be signaled. Takes
 * one off the time that is left. */
static uint64_t slice_of(uint64_t* timeout) {
  uint64_t slice = *timeout < PATIENCE ? *timeout : PATIENCE;
  *timeout -= slice;
  return slice;
}

static VkResult hostile_WaitForFences(VkDevice handle, uint32_t count, const VkFence* fences,
                                      VkBool32 all, uint64_t timeout) {
  struct device* device = device_of(handle);
  VkResult result;
  do
    result = device->lost ? VK_ERROR_DEVICE_LOST
                          : device->WaitForFences(handle, count, fences, all, slice_of(&timeout));
  while (result == VK_TIMEOUT && timeout);
  for (uint32_t i = 0; i < count && result == VK_SUCCESS && (all || count == 1); i++)
    waited_for_fence(device, fences[i]);
  return ended(device, result);
}

static VkResult hostile_GetFenceStatus(VkDevice handle, VkFence fence) {
  struct device* device = device_of(handle);
  if (device->lost) return VK_ERROR_DEVICE_LOST;
  VkResult result = device->GetFenceStatus(handle, fence);
  if (result == VK_SUCCESS) waited_for_fence(device, fence);
  return result;
}

static VkResult hostile_WaitSemaphores(VkDevice handle, const VkSemaphoreWaitInfo* info,
                                       uint64_t timeout) {
  struct device* device = device_of(handle);
  bool all = info->semaphoreCount == 1 || !(info->flags & VK_SEMAPHORE_WAIT_ANY_BIT);
  VkResult result;
  do
    result = device->lost ? VK_ERROR_DEVICE_LOST
                          : device->WaitSemaphores(handle, info, slice_of(&timeout));
  while (result == VK_TIMEOUT && timeout);
  for (uint32_t i = 0; i < info->semaphoreCount && result == VK_SUCCESS && all; i++)
    waited_for_semaphore(device, info->pSemaphores[i], info->pValues[i]);
  return ended(device, result);
}

static VkResult hostile_SignalSemaphore(VkDevice handle, const VkSemaphoreSignalInfo* info) {
  struct device* device = device_of(handle);
  return device->lost ? VK_SUCCESS : device->SignalSemaphore(handle, info);
}

/* What waited for it has ended, or nobody may destroy it. */
static void hostile_DestroySemaphore(VkDevice handle, VkSemaphore semaphore, CALLBACKS) {
  struct device* device = device_of(handle);
  pthread_mutex_lock(&device->queue_lock);
  int kept = 0;
  for (int i = 0; i < device->awaited_count; i++)
    if (device->awaited[i].semaphore != semaphore) device->awaited[kept++] = device->awaited[i];
  device->awaited_count = kept;
  pthread_mutex_unlock(&device->queue_lock);
  device->DestroySemaphore(handle, semaphore, callbacks);
}

/* All families are the driver's one. */
static VkResult hostile_CreateCommandPool(VkDevice handle, const VkCommandPoolCreateInfo* info,
                                          CALLBACKS, VkCommandPool* made) {
  VkCommandPoolCreateInfo changed = *info;
  changed.queueFamilyIndex = 0;
  return device_of(handle)->CreateCommandPool(handle, &changed, callbacks, made);
}

static VkResult hostile_CreateBuffer(VkDevice handle, const VkBufferCreateInfo* info, CALLBACKS,
                                     VkBuffer* made) {
  struct device* device = device_of(handle);
  VkBufferCreateInfo changed = *info;
  changed.sharingMode = VK_SHARING_MODE_EXCLUSIVE;
  changed.queueFamilyIndexCount = 0;
  VkResult result = device->CreateBuffer(handle, &changed, callbacks, made);
  if (result == VK_SUCCESS)
    track_buffer(device, *made, info->sharingMode == VK_SHARING_MODE_CONCURRENT);
  return result;
}

#define FUNCTIONS(X) \
  X(GetDeviceQueue) X(GetDeviceQueue2) X(QueueSubmit) X(QueueWaitIdle) X(DeviceWaitIdle) \
  X(WaitForFences) X(GetFenceStatus) X(WaitSemaphores) X(SignalSemaphore) X(DestroySemaphore) \
  X(CreateCommandPool) X(CreateBuffer)
FINDER(queue_function, FUNCTIONS)
