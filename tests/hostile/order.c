/* The order of commands: as far as no barrier keeps them apart, the last one runs first, which every
 * device may do.
 *
 * What is recorded is kept, and given to the driver when the recording ends. A command runs behind
 * another one where a barrier (or a chain of them) leads from the stage of that one to its own, and
 * names the accesses: what that one wrote has to be available, and visible to this one. Barriers
 * without accesses keep nothing apart here, though they would do for writes behind reads.
 */
#include <stdlib.h>
#include <string.h>

#include "tracking.h"

#define MAX_PUSH 256

enum kind { DISPATCH, COPY, FILL, UPDATE, CHANGE, RESET, STAMP };

struct command {
  enum kind kind;
  /* The stage that it runs in, and those that barriers behind it have made wait for it */
  uint8_t stage, reached;
  uint64_t* behind; /* bits of the commands that it runs behind */
  int waits;        /* how many of them have not run yet */
  bool done;
  VkPipeline pipeline;
  VkPipelineLayout layout, push_layout;
  VkDescriptorSet set;
  uint32_t groups[3], push_size, word, first, count;
  unsigned char push[MAX_PUSH];
  VkBuffer from, to;
  VkDeviceSize offset, size;
  VkQueryPool queries;
  VkPipelineStageFlagBits stamped;
  void* data; /* of copies the regions, of changes the barriers, of updates the bytes */
};

struct recording {
  struct command* commands;
  int count;
  struct command state; /* what is bound */
};

static struct recording* recording_of(struct device* device, VkCommandBuffer handle) {
  locked(device);
  struct recording** place = &OBJECT(device, RECORDING, handle)->recording;
  if (!*place) *place = calloc(1, sizeof **place);
  unlock(device);
  return *place;
}

static void clear(struct recording* recording) {
  for (int i = 0; i < recording->count; i++) {
    free(recording->commands[i].behind);
    free(recording->commands[i].data);
  }
  recording->count = 0;
  memset(&recording->state, 0, sizeof recording->state);
}

static void* copied(const void* bytes, size_t size) {
  void* copy = malloc(size ? size : 1);
  memcpy(copy, bytes, size);
  return copy;
}

static struct command* append(struct recording* recording, enum kind kind, uint8_t stage) {
  int number = recording->count++;
  recording->commands = grown(recording->commands, number, sizeof *recording->commands);
  struct command* command = &recording->commands[number];
  *command = recording->state;
  command->kind = kind;
  command->stage = stage;
  command->behind = calloc(number / 64 + 1, sizeof(uint64_t));
  for (int i = 0; i < number; i++)
    if (recording->commands[i].reached & stage) {
      command->behind[i / 64] |= 1ull << i % 64;
      command->waits++;
    }
  return command;
}

static struct command* of_handle(VkCommandBuffer handle, enum kind kind, uint8_t stage) {
  return append(recording_of(device_of(handle), handle), kind, stage);
}

static VkResult hostile_BeginCommandBuffer(VkCommandBuffer handle,
                                           const VkCommandBufferBeginInfo* info) {
  struct device* device = device_of(handle);
  clear(recording_of(device, handle));
  begin_events(device, handle);
  return device->BeginCommandBuffer(handle, info);
}

static void hostile_CmdBindPipeline(VkCommandBuffer handle, VkPipelineBindPoint point,
                                    VkPipeline pipeline) {
  (void)point;
  recording_of(device_of(handle), handle)->state.pipeline = pipeline;
}

static void hostile_CmdBindDescriptorSets(
    VkCommandBuffer handle, VkPipelineBindPoint point, VkPipelineLayout layout, uint32_t first,
    uint32_t count, const VkDescriptorSet* sets, uint32_t offset_count, const uint32_t* offsets) {
  struct device* device = device_of(handle);
  struct command* state = &recording_of(device, handle)->state;
  state->layout = layout;
  state->set = sets[0];
  if (first || count != 1 || offset_count)
    fault(device, "%u sets from %u with %u offsets: the layer knows one set", count, first,
          offset_count);
  (void)point, (void)offsets;
}

static void hostile_CmdPushConstants(VkCommandBuffer handle, VkPipelineLayout layout,
                                     VkShaderStageFlags shaders, uint32_t offset, uint32_t size,
                                     const void* bytes) {
  struct device* device = device_of(handle);
  struct command* state = &recording_of(device, handle)->state;
  if (state->push_layout != layout) state->push_size = 0;
  state->push_layout = layout;
  if (offset + size > MAX_PUSH) {
    fault(device, "%u bytes of push constants", offset + size);
    return;
  }
  memcpy(state->push + offset, bytes, size);
  if (state->push_size < offset + size) state->push_size = offset + size;
  (void)shaders;
}

static void hostile_CmdDispatch(VkCommandBuffer handle, uint32_t x, uint32_t y, uint32_t z) {
  struct command* command = of_handle(handle, DISPATCH, COMPUTE);
  record_dispatch(device_of(handle), handle, command->pipeline, command->set);
  command->groups[0] = x, command->groups[1] = y, command->groups[2] = z;
}

static void hostile_CmdCopyBuffer(VkCommandBuffer handle, VkBuffer from, VkBuffer to,
                                  uint32_t count, const VkBufferCopy* regions) {
  struct command* command = of_handle(handle, COPY, TRANSFER);
  command->from = from, command->to = to, command->count = count;
  command->data = copied(regions, count * sizeof *regions);
  for (uint32_t i = 0; i < count; i++) {
    struct transfer one = {from, to, regions[i].srcOffset, regions[i].dstOffset, regions[i].size};
    record_transfer(device_of(handle), handle, one);
  }
}

/* What writes a part of a buffer */
static struct command* append_write(VkCommandBuffer handle, enum kind kind, VkBuffer to,
                                    VkDeviceSize offset, VkDeviceSize size) {
  struct command* command = of_handle(handle, kind, TRANSFER);
  command->to = to, command->offset = offset, command->size = size;
  record_transfer(device_of(handle), handle, (struct transfer){0, to, 0, offset, size});
  return command;
}

static void hostile_CmdFillBuffer(VkCommandBuffer handle, VkBuffer to, VkDeviceSize offset,
                                  VkDeviceSize size, uint32_t word) {
  append_write(handle, FILL, to, offset, size)->word = word;
}

static void hostile_CmdUpdateBuffer(VkCommandBuffer handle, VkBuffer to, VkDeviceSize offset,
                                    VkDeviceSize size, const void* bytes) {
  append_write(handle, UPDATE, to, offset, size)->data = copied(bytes, size);
}

/* What has to do with queries stays between what was recorded before it and behind it. */
static void hostile_CmdResetQueryPool(VkCommandBuffer handle, VkQueryPool queries, uint32_t first,
                                      uint32_t count) {
  struct recording* recording = recording_of(device_of(handle), handle);
  for (int i = 0; i < recording->count; i++) recording->commands[i].reached = BOTH_STAGES;
  struct command* command = append(recording, RESET, BOTH_STAGES);
  command->queries = queries, command->first = first, command->count = count;
  command->reached = BOTH_STAGES;
}

static void hostile_CmdWriteTimestamp(VkCommandBuffer handle, VkPipelineStageFlagBits stage,
                                      VkQueryPool queries, uint32_t number) {
  struct recording* recording = recording_of(device_of(handle), handle);
  uint8_t* before = malloc((recording->count + 1) * sizeof *before);
  /* It waits for all, but makes nothing wait that did not. */
  for (int i = 0; i < recording->count; i++) {
    before[i] = recording->commands[i].reached;
    recording->commands[i].reached = BOTH_STAGES;
  }
  struct command* command = append(recording, STAMP, BOTH_STAGES);
  for (int i = 0; i + 1 < recording->count; i++) recording->commands[i].reached = before[i];
  free(before);
  command->stamped = stage, command->queries = queries, command->first = number;
  command->stage = 0;
}

static void hostile_CmdPipelineBarrier(
    VkCommandBuffer handle, VkPipelineStageFlags from, VkPipelineStageFlags to,
    VkDependencyFlags flags, uint32_t memory_count, const VkMemoryBarrier* memory,
    uint32_t buffer_count, const VkBufferMemoryBarrier* buffers, uint32_t image_count,
    const VkImageMemoryBarrier* images) {
  struct recording* recording = recording_of(device_of(handle), handle);
  VkAccessFlags wrote = 0, sees = 0;
  for (uint32_t i = 0; i < memory_count; i++)
    wrote |= memory[i].srcAccessMask, sees |= memory[i].dstAccessMask;
  for (uint32_t i = 0; i < buffer_count; i++)
    wrote |= buffers[i].srcAccessMask, sees |= buffers[i].dstAccessMask;
  for (uint32_t i = 0; i < image_count; i++)
    wrote |= images[i].srcAccessMask, sees |= images[i].dstAccessMask;
  struct event barrier =
      record_barrier(device_of(handle), handle, from, to, wrote, sees, image_count, images);
  /* Here what copies write comes behind what it writes over, too. */
  uint8_t reached = barrier.makes_visible;
  if (sees & VK_ACCESS_TRANSFER_WRITE_BIT) reached |= barrier.to & TRANSFER;
  struct command* change = NULL;
  if (image_count) {
    /* A command of its own: behind everything that the barrier waits for */
    change = append(recording, CHANGE, 0);
    change->count = image_count;
    change->data = copied(images, image_count * sizeof *images);
  }
  int last = recording->count - (change != NULL);
  for (int i = 0; i < last; i++) {
    struct command* before = &recording->commands[i];
    if (!((before->stage | before->reached) & barrier.stage)) continue;
    if (before->reached & barrier.stage || before->kind > UPDATE
        || before->stage & barrier.makes_available)
      before->reached |= reached;
    if (change) {
      change->behind[i / 64] |= 1ull << i % 64;
      change->waits++;
    }
  }
  if (change) change->reached = reached;
  (void)flags;
}

static void wait_for_all(struct device* device, VkCommandBuffer handle, uint32_t count,
                         const VkImageMemoryBarrier* images) {
  const VkPipelineStageFlags stages =
      VK_PIPELINE_STAGE_ALL_COMMANDS_BIT | VK_PIPELINE_STAGE_HOST_BIT;
  const VkAccessFlags accesses = VK_ACCESS_MEMORY_READ_BIT | VK_ACCESS_MEMORY_WRITE_BIT;
  VkMemoryBarrier all = {VK_STRUCTURE_TYPE_MEMORY_BARRIER, NULL, accesses, accesses};
  device->CmdPipelineBarrier(handle, stages, stages, 0, 1, &all, 0, NULL, count, images);
}

static void give(struct device* device, VkCommandBuffer handle, const struct command* c) {
  switch (c->kind) {
    case DISPATCH:
      device->CmdBindPipeline(handle, VK_PIPELINE_BIND_POINT_COMPUTE, c->pipeline);
      if (c->set)
        device->CmdBindDescriptorSets(handle, VK_PIPELINE_BIND_POINT_COMPUTE, c->layout, 0, 1,
                                      &c->set, 0, NULL);
      if (c->push_size)
        device->CmdPushConstants(handle, c->push_layout, VK_SHADER_STAGE_COMPUTE_BIT, 0,
                                 c->push_size, c->push);
      device->CmdDispatch(handle, c->groups[0], c->groups[1], c->groups[2]);
      break;
    case COPY:
      device->CmdCopyBuffer(handle, c->from, c->to, c->count, c->data);
      break;
    case FILL:
      device->CmdFillBuffer(handle, c->to, c->offset, c->size, c->word);
      break;
    case UPDATE:
      device->CmdUpdateBuffer(handle, c->to, c->offset, c->size, c->data);
      break;
    case CHANGE:
      wait_for_all(device, handle, c->count, c->data);
      for (uint32_t i = 0; i < c->count; i++) {
        const VkImageMemoryBarrier* change = (const VkImageMemoryBarrier*)c->data + i;
        if (change->oldLayout == VK_IMAGE_LAYOUT_UNDEFINED) empty_image(device, handle, change);
      }
      break;
    case RESET:
      device->CmdResetQueryPool(handle, c->queries, c->first, c->count);
      break;
    case STAMP:
      device->CmdWriteTimestamp(handle, c->stamped, c->queries, c->first);
      break;
  }
  wait_for_all(device, handle, 0, NULL);
}

/* Gives the driver what was recorded: always the last command that waits for none. */
static void give_all(struct device* device, VkCommandBuffer handle, struct recording* recording) {
  struct command* all = recording->commands;
  for (int left = recording->count; left; left--) {
    int next = recording->count - 1;
    while (all[next].done || all[next].waits) next--;
    give(device, handle, &all[next]);
    all[next].done = true;
    for (int i = next + 1; i < recording->count; i++)
      all[i].waits -= all[i].behind[next / 64] >> next % 64 & 1;
  }
}

static VkResult hostile_EndCommandBuffer(VkCommandBuffer handle) {
  struct device* device = device_of(handle);
  struct recording* recording = recording_of(device, handle);
  wait_for_all(device, handle, 0, NULL);
  give_all(device, handle, recording);
  clear(recording);
  return device->EndCommandBuffer(handle);
}

void close_recording(struct recording* recording) {
  if (!recording) return;
  clear(recording);
  free(recording->commands);
  free(recording);
}

#define FUNCTIONS(X) \
  X(BeginCommandBuffer) X(EndCommandBuffer) X(CmdBindPipeline) X(CmdBindDescriptorSets) \
  X(CmdPushConstants) X(CmdDispatch) X(CmdCopyBuffer) X(CmdFillBuffer) X(CmdUpdateBuffer) \
  X(CmdResetQueryPool) X(CmdWriteTimestamp) X(CmdPipelineBarrier)
FINDER(order_function, FUNCTIONS)
