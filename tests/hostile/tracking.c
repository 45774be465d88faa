/* What handles stand for, and what command buffers hold, as far as it says which bytes are read and
 * written: accesses.c compares that when it is submitted. */
#include <stdlib.h>

#include "tracking.h"

struct object* object_of(struct tracking* tracking, enum type type, uint64_t handle) {
  struct object** bucket = &tracking->buckets[(handle >> 4 ^ handle >> 16) % BUCKETS];
  struct object* found = *bucket;
  while (found && (found->type != type || found->handle != handle)) found = found->next;
  if (found) return found;
  found = calloc(1, sizeof *found);
  found->type = type, found->handle = handle;
  found->next = *bucket;
  return *bucket = found;
}

static void empty(struct object* object) {
  for (int i = 0; object->type == RECORDING && i < object->count; i++)
    free(object->events[i].touches);
  free(object->bindings), free(object->signals), free(object->events);
  object->bindings = NULL, object->signals = NULL, object->events = NULL;
  object->count = 0;
}

void* grown(void* array, int count, size_t size) {
  return count & (count - 1) ? array : realloc(array, (count ? 2 * count : 1) * size);
}

void start_tracking(struct device* device) {
  device->tracking = calloc(1, sizeof *device->tracking);
  pthread_mutex_init(&device->tracking->lock, NULL);
}

void close_tracking(struct device* device) {
  for (int i = 0; i < BUCKETS; i++)
    for (struct object *object = device->tracking->buckets[i], *next; object; object = next) {
      next = object->next;
      empty(object);
      close_recording(object->recording);
      free(object);
    }
  free(device->tracking->images);
  free(device->tracking->accesses);
  free(device->tracking);
}

struct tracking* locked(struct device* device) {
  pthread_mutex_lock(&device->tracking->lock);
  return device->tracking;
}

void unlock(struct device* device) { pthread_mutex_unlock(&device->tracking->lock); }

/* What handles stand for */

void track_buffer(struct device* device, VkBuffer buffer, bool is_concurrent) {
  locked(device);
  struct object* object = OBJECT(device, BUFFER, buffer);
  object->range = (struct range){0};
  object->is_concurrent = is_concurrent;
  unlock(device);
}

bool is_concurrent(struct device* device, VkBuffer buffer) {
  locked(device);
  bool is = OBJECT(device, BUFFER, buffer)->is_concurrent;
  unlock(device);
  return is;
}

static void bound(struct device* device, enum type type, uint64_t handle, VkDeviceMemory memory,
                  VkDeviceSize offset, const VkMemoryRequirements* required) {
  uint32_t type_number;
  VkDeviceSize room = room_of(device, memory, &type_number);
  if (offset % required->alignment || offset > room || required->size > room - offset
      || !(required->memoryTypeBits >> type_number & 1))
    fault(device, "what needs %llu bytes aligned to %llu of the memory types %x is bound at %llu of "
          "%llu bytes of type %u", (unsigned long long)required->size,
          (unsigned long long)required->alignment, required->memoryTypeBits,
          (unsigned long long)offset, (unsigned long long)room, type_number);
  struct tracking* tracking = locked(device);
  struct object* object = object_of(tracking, type, handle);
  object->range = (struct range){memory, offset, offset + required->size, NULL};
  object->is_general = false;
  if (type == IMAGE) {
    object->range.image = object;
    int i = 0;
    while (i < tracking->image_count && tracking->images[i] != object) i++;
    if (i == tracking->image_count) {
      tracking->images = grown(tracking->images, i, sizeof *tracking->images);
      tracking->images[tracking->image_count++] = object;
    }
  }
  unlock(device);
}

/* Binds a buffer or an image, or several of them */
#define BIND(Kind, KIND, field) \
  static VkResult hostile_Bind##Kind##Memory(VkDevice handle, Vk##Kind field, \
                                             VkDeviceMemory memory, VkDeviceSize offset) { \
    struct device* device = device_of(handle); \
    VkMemoryRequirements required; \
    ((PFN_vkGet##Kind##MemoryRequirements)memory_function("vkGet" #Kind "MemoryRequirements"))( \
        handle, field, &required); \
    bound(device, KIND, (uint64_t)(uintptr_t)field, memory, offset, &required); \
    return device->Bind##Kind##Memory(handle, field, memory, offset); \
  } \
  static VkResult hostile_Bind##Kind##Memory2(VkDevice handle, uint32_t count, \
                                              const VkBind##Kind##MemoryInfo* infos) { \
    VkResult result = VK_SUCCESS; \
    for (uint32_t i = 0; i < count && result == VK_SUCCESS; i++) \
      result = hostile_Bind##Kind##Memory(handle, infos[i].field, infos[i].memory, \
                                          infos[i].memoryOffset); \
    return result; \
  }
BIND(Buffer, BUFFER, buffer)
BIND(Image, IMAGE, image)

static struct range part(struct range whole, VkDeviceSize offset, VkDeviceSize size) {
  whole.start += offset;
  if (size != VK_WHOLE_SIZE && whole.start + size < whole.end) whole.end = whole.start + size;
  return whole;
}

void track_view(struct device* device, VkBufferView view, VkBuffer buffer, VkDeviceSize offset,
                VkDeviceSize size) {
  locked(device);
  OBJECT(device, VIEW, view)->range = part(OBJECT(device, BUFFER, buffer)->range, offset, size);
  unlock(device);
}

static VkResult hostile_CreateImageView(VkDevice handle, const VkImageViewCreateInfo* info,
                                        CALLBACKS, VkImageView* made) {
  struct device* device = device_of(handle);
  VkResult result = device->CreateImageView(handle, info, callbacks, made);
  if (result != VK_SUCCESS) return result;
  locked(device);
  OBJECT(device, VIEW, *made)->range = OBJECT(device, IMAGE, info->image)->range;
  unlock(device);
  return result;
}

/* A semaphore whose handle another one had before: nothing has signaled it. */
static VkResult hostile_CreateSemaphore(VkDevice handle, const VkSemaphoreCreateInfo* info,
                                        CALLBACKS, VkSemaphore* made) {
  struct device* device = device_of(handle);
  VkResult result = device->CreateSemaphore(handle, info, callbacks, made);
  if (result != VK_SUCCESS) return result;
  locked(device);
  empty(OBJECT(device, SEMAPHORE, *made));
  unlock(device);
  return result;
}

static VkResult hostile_AllocateDescriptorSets(VkDevice handle,
                                               const VkDescriptorSetAllocateInfo* info,
                                               VkDescriptorSet* made) {
  struct device* device = device_of(handle);
  VkResult result = device->AllocateDescriptorSets(handle, info, made);
  if (result != VK_SUCCESS) return result;
  locked(device);
  for (uint32_t i = 0; i < info->descriptorSetCount; i++) empty(OBJECT(device, SET, made[i]));
  unlock(device);
  return result;
}

void track_write(struct device* device, const VkWriteDescriptorSet* write) {
  locked(device);
  struct object* set = OBJECT(device, SET, write->dstSet);
  if (!set->bindings) set->bindings = calloc(MAX_BINDINGS, sizeof *set->bindings);
  if (write->dstBinding < MAX_BINDINGS) {
    struct range* range = &set->bindings[write->dstBinding];
    if (write->descriptorType == VK_DESCRIPTOR_TYPE_STORAGE_BUFFER)
      *range = part(OBJECT(device, BUFFER, write->pBufferInfo->buffer)->range,
                    write->pBufferInfo->offset, write->pBufferInfo->range);
    else if (write->descriptorType == VK_DESCRIPTOR_TYPE_UNIFORM_TEXEL_BUFFER)
      *range = OBJECT(device, VIEW, *write->pTexelBufferView)->range;
    else
      *range = OBJECT(device, VIEW, write->pImageInfo->imageView)->range;
  }
  unlock(device);
}

/* Memory that is gone: what touches its successor has nothing to do with it. */
void forget_memory(struct device* device, VkDeviceMemory memory) {
  struct tracking* tracking = locked(device);
  int kept = 0;
  for (int i = 0; i < tracking->count; i++)
    if (tracking->accesses[i].touch.range.memory != memory)
      tracking->accesses[kept++] = tracking->accesses[i];
  tracking->count = kept;
  unlock(device);
}

/* What is recorded */

void begin_events(struct device* device, VkCommandBuffer handle) {
  locked(device);
  empty(OBJECT(device, RECORDING, handle));
  unlock(device);
}

static struct event* add(struct device* device, VkCommandBuffer handle) {
  struct object* recording = OBJECT(device, RECORDING, handle);
  recording->events = grown(recording->events, recording->count, sizeof *recording->events);
  struct event* event = &recording->events[recording->count++];
  *event = (struct event){0};
  return event;
}

static void touch(struct event* event, struct range range, bool writes) {
  if (!range.memory || range.start >= range.end) return;
  event->touches = grown(event->touches, event->count, sizeof *event->touches);
  event->touches[event->count++] = (struct touch){range, writes};
}

void record_dispatch(struct device* device, VkCommandBuffer handle, VkPipeline pipeline,
                     VkDescriptorSet set) {
  locked(device);
  struct event* event = add(device, handle);
  event->stage = COMPUTE;
  struct interface interface = OBJECT(device, PIPELINE, pipeline)->interface;
  const struct range* bindings = OBJECT(device, SET, set)->bindings;
  for (int i = 0; bindings && i < MAX_BINDINGS; i++) {
    if (interface.reads >> i & 1) touch(event, bindings[i], false);
    if (interface.writes >> i & 1) touch(event, bindings[i], true);
  }
  unlock(device);
}

void record_transfer(struct device* device, VkCommandBuffer handle, struct transfer t) {
  locked(device);
  struct event* event = add(device, handle);
  event->stage = TRANSFER;
  if (t.from) touch(event, part(OBJECT(device, BUFFER, t.from)->range, t.start, t.size), false);
  touch(event, part(OBJECT(device, BUFFER, t.to)->range, t.offset, t.size), true);
  unlock(device);
}

/* Compute and transfer; what is of the host is a matter of waits. */
uint8_t stages_of(VkPipelineStageFlags given, VkPipelineStageFlagBits all) {
  if (given & (VK_PIPELINE_STAGE_ALL_COMMANDS_BIT | all)) return BOTH_STAGES;
  return (given & VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT ? COMPUTE : 0)
         | (given & VK_PIPELINE_STAGE_TRANSFER_BIT ? TRANSFER : 0);
}

static uint8_t with(VkAccessFlags accesses, VkAccessFlags all, VkAccessFlags shader,
                    VkAccessFlags transfer) {
  return (accesses & (all | shader) ? COMPUTE : 0) | (accesses & (all | transfer) ? TRANSFER : 0);
}

struct event record_barrier(struct device* device, VkCommandBuffer handle,
                            VkPipelineStageFlags from, VkPipelineStageFlags to, VkAccessFlags wrote,
                            VkAccessFlags sees, uint32_t image_count,
                            const VkImageMemoryBarrier* images) {
  locked(device);
  struct event* event = add(device, handle);
  event->is_barrier = true;
  event->stage = stages_of(from, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT);
  event->to = stages_of(to, VK_PIPELINE_STAGE_TOP_OF_PIPE_BIT);
  event->makes_available = with(wrote, VK_ACCESS_MEMORY_WRITE_BIT, VK_ACCESS_SHADER_WRITE_BIT,
                                VK_ACCESS_TRANSFER_WRITE_BIT);
  event->makes_visible = event->to & with(sees, VK_ACCESS_MEMORY_READ_BIT,
                                          VK_ACCESS_SHADER_READ_BIT, VK_ACCESS_TRANSFER_READ_BIT);
  struct event barrier = *event;
  /* A change of layout writes the image, between the barrier's two sides. */
  for (uint32_t i = 0; i < image_count; i++)
    if (images[i].oldLayout != images[i].newLayout)
      touch(event, OBJECT(device, IMAGE, images[i].image)->range, true);
  unlock(device);
  return barrier;
}

#define FUNCTIONS(X) \
  X(BindBufferMemory) X(BindImageMemory) X(BindBufferMemory2) X(BindImageMemory2) \
  X(CreateImageView) X(CreateSemaphore) X(AllocateDescriptorSets)
FINDER(tracking_function, FUNCTIONS)
