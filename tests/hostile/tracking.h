/* What is kept of handles and of recorded commands, for accesses.c to look at when they are submitted */
#ifndef VKRT_HOSTILE_TRACKING_H
#define VKRT_HOSTILE_TRACKING_H

#include "layer.h"

enum { COMPUTE = 1, TRANSFER = 2, BOTH_STAGES = 3 };
enum type { BUFFER, IMAGE, VIEW, SET, MODULE, PIPELINE, SEMAPHORE, FENCE, RECORDING };

/* A part of a memory, and the image that it is, if any */
struct range {
  VkDeviceMemory memory;
  VkDeviceSize start, end;
  struct object* image;
};

struct touch {
  struct range range;
  bool writes;
};

/* A command with what it touches, or a barrier with the stages and accesses it has */
struct event {
  bool is_barrier;
  uint8_t stage, to, makes_available, makes_visible;
  int count;
  struct touch* touches;
};

struct signal {
  uint64_t value;
  int queue;
  long submission;
};

/* What is known of a handle */
struct object {
  struct object* next;
  enum type type;
  uint64_t handle;
  struct range range; /* of buffers, images and views */
  bool is_concurrent, is_general; /* of images the latter: in that layout, with what they hold */
  VkFormat format;            /* of images */
  uint64_t digest, nbytes;    /* of modules */
  struct interface interface; /* of modules and pipelines */
  struct range* bindings;     /* of sets */
  struct signal* signals;     /* of semaphores and fences */
  struct event* events;       /* of recordings */
  struct recording* recording;
  int count;
};

struct access {
  struct touch touch;
  uint8_t stage, ordered[MAX_FAMILIES], seen[MAX_FAMILIES];
  bool available, waited_for; /* waited_for: the host has waited for it */
  int queue;
  long submission;
};

#define BUCKETS 4096

struct tracking {
  pthread_mutex_t lock;
  struct object* buckets[BUCKETS];
  struct object** images;
  int image_count;
  struct access* accesses;
  int count;
  long submissions;
};

#define OBJECT(device, type, handle) object_of((device)->tracking, type, (uint64_t)(uintptr_t)(handle))

/* What is known of a handle; nothing at first. The lock is held. */
struct object* object_of(struct tracking* tracking, enum type type, uint64_t handle);
void close_recording(struct recording* recording); /* NULL is none */
struct tracking* locked(struct device* device);
void unlock(struct device* device);
uint8_t stages_of(VkPipelineStageFlags given, VkPipelineStageFlagBits all);
/* Returns what it records, without what it touches. */
struct event record_barrier(struct device* device, VkCommandBuffer handle,
                            VkPipelineStageFlags from, VkPipelineStageFlags to, VkAccessFlags wrote,
                            VkAccessFlags sees, uint32_t image_count,
                            const VkImageMemoryBarrier* images);

#endif
