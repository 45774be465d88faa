/* A Vulkan layer that makes one driver look and behave like another device, for tests.
 *
 * What that device is like is in a profile (profile.c reads it). The files are by what they change:
 * physical.c what the device says of itself, limits.c which limits it keeps, memory.c its memory,
 * queues.c its queues and how it is lost, order.c in which order it carries out commands, images.c
 * what images hold, pipelines.c its cache of them, failures.c which calls fail. tracking.c notes which bytes commands touch,
 * accesses.c compares those of submissions, spirv.c reads what kernels do with their bindings, and
 * layer.c finds the functions behind.
 */
#ifndef VKRT_HOSTILE_LAYER_H
#define VKRT_HOSTILE_LAYER_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <vulkan/vulkan.h>
#include <vulkan/vk_layer.h>

#define MAX_NAMES 64
#define MAX_LIMITS 64
#define MAX_FAMILIES 8
#define MAX_FORMATS 16
#define MAX_BINDINGS 32
#define MAX_FAILING 64

/* Whether host memory can be imported, or seems to be until something is submitted */
enum imports { IMPORTS_WORK, IMPORTS_REFUSED, IMPORTS_LOST, IMPORTS_DENIED };

struct limit {
  const char* name;
  uint64_t values[3];
  int count;
};

struct profile {
  char text[16384]; /* what the names point to */
  const char* name;
  uint32_t api_version, vendor, device, driver_id;
  VkPhysicalDeviceType type;
  int limit_count, extension_count, feature_count, family_count, format_count;
  struct limit limits[MAX_LIMITS];
  const char* extensions[MAX_NAMES];
  const char* features[MAX_NAMES];
  VkQueueFlags families[MAX_FAMILIES];
  struct { VkFormat format; VkFormatFeatureFlags optimal, buffer; } formats[MAX_FORMATS];
  VkPhysicalDeviceMemoryProperties memory; /* no types: those of the driver */
  uint32_t buffer_types, image_types, import_types; /* bits */
  VkDeviceSize buffer_alignment, image_alignment; /* of their memory, in bytes */
  enum imports imports;
  bool reorders; /* commands that no barrier keeps apart run the other way round */
};

extern struct profile profile;
void read_profile(void);
const struct limit* find_limit(const char* name);
bool is_listed(const char* const* names, int count, const char* name);

/* Functions behind this layer, by the lists of layer.c */
#define INSTANCE_FUNCTIONS(X) \
  X(DestroyInstance) X(GetPhysicalDeviceProperties) X(GetPhysicalDeviceProperties2) \
  X(GetPhysicalDeviceFeatures) X(GetPhysicalDeviceFeatures2) \
  X(GetPhysicalDeviceMemoryProperties) X(GetPhysicalDeviceQueueFamilyProperties) \
  X(GetPhysicalDeviceFormatProperties) X(GetPhysicalDeviceFormatProperties2) \
  X(GetPhysicalDeviceImageFormatProperties) X(GetPhysicalDeviceImageFormatProperties2) \
  X(EnumerateDeviceExtensionProperties) X(GetPhysicalDeviceExternalBufferProperties)
#define DEVICE_FUNCTIONS(X) \
  X(DestroyDevice) X(GetDeviceQueue) X(QueueSubmit) X(QueueWaitIdle) X(DeviceWaitIdle) \
  X(WaitForFences) X(GetFenceStatus) X(WaitSemaphores) X(SignalSemaphore) \
  X(AllocateMemory) X(FreeMemory) X(MapMemory) X(UnmapMemory) \
  X(GetBufferMemoryRequirements) X(GetBufferMemoryRequirements2) \
  X(GetImageMemoryRequirements) X(GetImageMemoryRequirements2) \
  X(GetDeviceBufferMemoryRequirements) X(GetDeviceImageMemoryRequirements) \
  X(GetMemoryHostPointerPropertiesEXT) X(CreateCommandPool) X(CreateBuffer) X(CreateImage) \
  X(DestroyImage) X(BeginCommandBuffer) X(EndCommandBuffer) \
  X(CmdBindPipeline) X(CmdBindDescriptorSets) X(CmdPushConstants) X(CmdDispatch) \
  X(CmdPipelineBarrier) X(CmdCopyBuffer) X(CmdFillBuffer) X(CmdUpdateBuffer) \
  X(CmdResetQueryPool) X(CmdWriteTimestamp) X(CmdClearColorImage) \
  X(CreateDescriptorSetLayout) X(CreatePipelineLayout) X(CreateBufferView) X(UpdateDescriptorSets) \
  X(CreateSemaphore) X(DestroySemaphore) X(CreateImageView) X(AllocateDescriptorSets) X(BindBufferMemory) \
  X(BindBufferMemory2) X(BindImageMemory) X(BindImageMemory2) \
  X(CreateShaderModule) X(CreateComputePipelines)

#define MEMBER(name) PFN_vk##name name;

/* What instances and devices begin with. What is dispatched begins with the address of a table, the
 * same for all of an instance (or of a device): that is the key. */
struct node {
  struct node* next;
  void* key;
};

struct instance {
  struct node node;
  VkInstance handle;
  PFN_vkGetInstanceProcAddr lookup;
  INSTANCE_FUNCTIONS(MEMBER)
};

/* An allocation; `shadow` is what the host sees where the memory is not coherent */
struct memory {
  struct memory* next;
  VkDeviceMemory handle;
  VkDeviceSize size;
  uint32_t type;
  bool imported;
  char *real, *shadow;
};

/* The device's queues are all the driver's one queue. The loader writes the first member. */
struct queue {
  void* loader;
  struct device* device;
};

/* What a submission waits for: (semaphore, value) */
struct awaited {
  VkSemaphore semaphore;
  uint64_t value;
};

/* Which bindings a kernel reads and writes, one bit each; whether it packs halves with an instruction
 * that rounds as the driver likes */
struct interface {
  uint32_t reads, writes;
  bool packs_halves;
};

/* A copy, or what writes `to` alone */
struct transfer {
  VkBuffer from, to;
  VkDeviceSize start, offset, size;
};

struct device {
  struct node node;
  VkDevice handle;
  PFN_vkGetDeviceProcAddr lookup;
  DEVICE_FUNCTIONS(MEMBER)
  pthread_mutex_t lock, queue_lock;
  struct memory* memories;
  VkDeviceSize used[VK_MAX_MEMORY_HEAPS];
  uint32_t allocations, imports;
  VkDeviceSize atom, most;
  uint32_t most_allocations;
  uint32_t real_type;
  struct queue queues[MAX_FAMILIES];
  VkQueue real_queue;
  long submissions, lose_at; /* 0: never */
  bool lose_at_wait;         /* the submission is accepted, and waiting for it fails */
  bool lost;
  struct awaited* awaited;
  int awaited_count;
  struct tracking* tracking;
  VkPhysicalDeviceProperties properties;
  PFN_vkVoidFunction behind[MAX_FAILING]; /* the functions that failures.c wraps */
  long compiled, found; /* pipelines, and those that a cache had */
};

struct instance* instance_of(const void* handle);
struct device* device_of(const void* handle);
/* The structure of this type in a chain; NULL where there is none */
void* in_chain(const void* chain, VkStructureType type);

/* Says on stderr what was done wrong; the device is lost from now on. */
void fault(struct device* device, const char* format, ...) __attribute__((format(printf, 2, 3)));

/* Every file's functions that stand for others: NULL where it has none of that name */
PFN_vkVoidFunction physical_function(const char* name);
PFN_vkVoidFunction memory_function(const char* name);
PFN_vkVoidFunction queue_function(const char* name);
PFN_vkVoidFunction order_function(const char* name);
PFN_vkVoidFunction image_function(const char* name);
PFN_vkVoidFunction limit_function(const char* name);
PFN_vkVoidFunction pipeline_function(const char* name);
PFN_vkVoidFunction tracking_function(const char* name);
PFN_vkVoidFunction failing_function(const char* name);
/* Whether `name` is a function's, or that of an extension that had it before the core */
bool is_name_of(const char* name, const char* function);

void adapt_limits(VkPhysicalDeviceLimits* limits);
uint64_t limit_or(const char* name, uint64_t other);
const char* refused_feature(const VkDeviceCreateInfo* info);
void start_memory(struct device* device, const VkPhysicalDeviceMemoryProperties* real);
void start_queues(struct device* device);
void empty_image(struct device* device, VkCommandBuffer handle, const VkImageMemoryBarrier* change);
void start_pipelines(struct device* device, VkPhysicalDevice physical);
void start_failures(struct device* device, PFN_vkVoidFunction (*find)(const char*));
void close_pipelines(struct device* device);
VkDeviceSize room_of(struct device* device, VkDeviceMemory memory, uint32_t* type);
struct interface interface_of(const uint32_t* code, size_t bytes);

/* tracking.c */
/* One more of an array of `count` elements whose room is a power of two */
void* grown(void* array, int count, size_t size);
void start_tracking(struct device* device);
void close_tracking(struct device* device);
void forget_memory(struct device* device, VkDeviceMemory memory);
void track_buffer(struct device* device, VkBuffer buffer, bool is_concurrent);
bool is_concurrent(struct device* device, VkBuffer buffer);
void track_view(struct device* device, VkBufferView view, VkBuffer buffer, VkDeviceSize offset,
                VkDeviceSize size);
void track_write(struct device* device, const VkWriteDescriptorSet* write);
void begin_events(struct device* device, VkCommandBuffer handle);
void record_dispatch(struct device* device, VkCommandBuffer handle, VkPipeline pipeline,
                     VkDescriptorSet set);
void record_transfer(struct device* device, VkCommandBuffer handle, struct transfer transfer);

/* accesses.c */
void track_submission(struct device* device, int queue, const VkSubmitInfo* info);
void track_fence(struct device* device, int queue, VkFence fence);
void waited_for_fence(struct device* device, VkFence fence);
void waited_for_semaphore(struct device* device, VkSemaphore semaphore, uint64_t value);
void waited_for_all(struct device* device);

/* The parameter of whatever creates or destroys something */
#define CALLBACKS const VkAllocationCallbacks* callbacks

#define FIND(function) \
  if (is_name_of(name, "vk" #function)) return (PFN_vkVoidFunction)hostile_##function;
/* Defines what finds a file's functions by their names, of a list as those above */
#define FINDER(finder, FUNCTIONS) \
  PFN_vkVoidFunction finder(const char* name) { FUNCTIONS(FIND) return NULL; }

#endif
