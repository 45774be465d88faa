/* The device's memory: types and heaps of the profile, all of the driver's one type. Memory that is
 * not coherent the host sees in a copy, a shadow, to and from which nothing but flushes and
 * invalidations carries bytes. New memory is full of NaN. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "layer.h"

/* NaN in single and half precision; and for the host something else */
#define UNWRITTEN 0x7FC17FC1u
#define UNSEEN 0xA5
/* Larger allocations stay as the driver gives them: to fill one commits all of its pages. */
#define FILLED_UP_TO ((VkDeviceSize)1 << 26)

/* Buffers of several queues need whole ones of so many bytes. */
#define CONCURRENT 512

static VkPhysicalDeviceMemoryProperties driver_memory;

static const VkPhysicalDeviceMemoryProperties* memory_properties(void) {
  return profile.memory.memoryTypeCount ? &profile.memory : &driver_memory;
}

void start_memory(struct device* device, const VkPhysicalDeviceMemoryProperties* real) {
  const VkMemoryPropertyFlags wanted =
      VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
  driver_memory = *real;
  while (device->real_type + 1 < real->memoryTypeCount
         && (real->memoryTypes[device->real_type].propertyFlags & wanted) != wanted)
    device->real_type++;
  device->atom = limit_or("nonCoherentAtomSize", 64);
  device->most = limit_or("maxMemoryAllocationSize", ~0ull);
  device->most_allocations = limit_or("maxMemoryAllocationCount", 4096);
}

static VkMemoryPropertyFlags flags_of(uint32_t type) {
  return memory_properties()->memoryTypes[type].propertyFlags;
}

static bool is_coherent(uint32_t type) {
  return flags_of(type) & VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
}

static struct memory* find(struct device* device, VkDeviceMemory handle) {
  struct memory* found = device->memories;
  while (found && found->handle != handle) found = found->next;
  return found;
}

VkDeviceSize room_of(struct device* device, VkDeviceMemory memory, uint32_t* type) {
  pthread_mutex_lock(&device->lock);
  const struct memory* found = find(device, memory);
  VkDeviceSize size = found ? found->size : 0;
  *type = found ? found->type : 0;
  pthread_mutex_unlock(&device->lock);
  return size;
}

static void fill(struct device* device, VkDeviceMemory handle, VkDeviceSize size) {
  void* bytes = NULL;
  if (size > FILLED_UP_TO
      || device->MapMemory(device->handle, handle, 0, VK_WHOLE_SIZE, 0, &bytes) != VK_SUCCESS)
    return;
  for (VkDeviceSize i = 0; i < size / 4; i++) ((uint32_t*)bytes)[i] = UNWRITTEN;
  device->UnmapMemory(device->handle, handle);
}

static VkResult refused_size(struct device* device, uint32_t heap, VkDeviceSize size) {
  VkDeviceSize whole = memory_properties()->memoryHeaps[heap].size;
  if (device->allocations >= device->most_allocations) return VK_ERROR_TOO_MANY_OBJECTS;
  if (size > device->most || size > whole || device->used[heap] > whole - size)
    return VK_ERROR_OUT_OF_DEVICE_MEMORY;
  return VK_SUCCESS;
}

static VkResult hostile_AllocateMemory(VkDevice handle, const VkMemoryAllocateInfo* info, CALLBACKS,
                                       VkDeviceMemory* made) {
  struct device* device = device_of(handle);
  bool imported = in_chain(info->pNext, VK_STRUCTURE_TYPE_IMPORT_MEMORY_HOST_POINTER_INFO_EXT);
  if (info->memoryTypeIndex >= memory_properties()->memoryTypeCount) {
    fault(device, "there is no memory type %u", info->memoryTypeIndex);
    return VK_ERROR_DEVICE_LOST;
  }
  bool refused = imported && profile.imports == IMPORTS_REFUSED;
  bool denied = imported && profile.imports == IMPORTS_DENIED;
  bool misplaced = imported && !(profile.import_types >> info->memoryTypeIndex & 1);
  if (denied) fault(device, "memory is imported, which the device says it cannot");
  else if (misplaced && !refused)
    fault(device, "memory is imported as type %u", info->memoryTypeIndex);
  if (refused || denied || misplaced) return VK_ERROR_INVALID_EXTERNAL_HANDLE;
  uint32_t heap = memory_properties()->memoryTypes[info->memoryTypeIndex].heapIndex;
  pthread_mutex_lock(&device->lock);
  VkResult result = imported ? VK_SUCCESS : refused_size(device, heap, info->allocationSize);
  if (result == VK_SUCCESS) {
    VkMemoryAllocateInfo changed = *info;
    changed.memoryTypeIndex = device->real_type;
    result = device->AllocateMemory(handle, &changed, callbacks, made);
  }
  if (result == VK_SUCCESS) {
    struct memory* memory = malloc(sizeof *memory);
    *memory = (struct memory){device->memories, *made, info->allocationSize, info->memoryTypeIndex,
                              imported, NULL, NULL};
    device->memories = memory;
    device->allocations++;
    device->imports += imported;
    if (!imported) {
      device->used[heap] += info->allocationSize;
      fill(device, *made, info->allocationSize);
    }
  }
  pthread_mutex_unlock(&device->lock);
  return result;
}

static void hostile_FreeMemory(VkDevice handle, VkDeviceMemory freed, CALLBACKS) {
  struct device* device = device_of(handle);
  if (!freed) return;
  forget_memory(device, freed);
  pthread_mutex_lock(&device->lock);
  struct memory** place = &device->memories;
  while (*place && (*place)->handle != freed) place = &(*place)->next;
  struct memory* memory = *place;
  if (memory) {
    *place = memory->next;
    device->allocations--;
    device->imports -= memory->imported;
    if (!memory->imported)
      device->used[memory_properties()->memoryTypes[memory->type].heapIndex] -= memory->size;
    free(memory->shadow);
    free(memory);
  }
  device->FreeMemory(handle, freed, callbacks);
  pthread_mutex_unlock(&device->lock);
}

static VkResult hostile_MapMemory(VkDevice handle, VkDeviceMemory mapped, VkDeviceSize offset,
                                  VkDeviceSize size, VkMemoryMapFlags flags, void** data) {
  struct device* device = device_of(handle);
  pthread_mutex_lock(&device->lock);
  struct memory* memory = find(device, mapped);
  VkResult result = VK_ERROR_MEMORY_MAP_FAILED;
  if (!(flags_of(memory->type) & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT))
    fault(device, "memory of type %u, which the host does not see, is mapped", memory->type);
  else if (memory->real)
    fault(device, "memory is mapped a second time");
  else
    result = device->MapMemory(handle, mapped, 0, VK_WHOLE_SIZE, flags, (void**)&memory->real);
  if (result == VK_SUCCESS && !is_coherent(memory->type)) {
    if (posix_memalign((void**)&memory->shadow, 4096, memory->size)) abort();
    memset(memory->shadow, UNSEEN, memory->size);
  }
  if (result == VK_SUCCESS) *data = (memory->shadow ? memory->shadow : memory->real) + offset;
  pthread_mutex_unlock(&device->lock);
  (void)size;
  return result;
}

static void hostile_UnmapMemory(VkDevice handle, VkDeviceMemory mapped) {
  struct device* device = device_of(handle);
  pthread_mutex_lock(&device->lock);
  struct memory* memory = find(device, mapped);
  free(memory->shadow);
  memory->shadow = memory->real = NULL;
  device->UnmapMemory(handle, mapped);
  pthread_mutex_unlock(&device->lock);
}

static VkResult carry(VkDevice handle, uint32_t count, const VkMappedMemoryRange* ranges,
                      bool to_device) {
  struct device* device = device_of(handle);
  VkResult result = VK_SUCCESS;
  pthread_mutex_lock(&device->lock);
  for (uint32_t i = 0; i < count; i++) {
    struct memory* memory = find(device, ranges[i].memory);
    VkDeviceSize start = ranges[i].offset, size = ranges[i].size;
    if (size == VK_WHOLE_SIZE) size = memory->size - start;
    if (!memory->real || start % device->atom || start > memory->size
        || size > memory->size - start
        || (size % device->atom && start + size != memory->size)) {
      fault(device, "bytes %llu to %llu of %llu are carried over, in atoms of %llu",
            (unsigned long long)start, (unsigned long long)(start + size),
            (unsigned long long)memory->size, (unsigned long long)device->atom);
      result = VK_ERROR_OUT_OF_HOST_MEMORY;
    } else if (memory->shadow) {
      char *from = to_device ? memory->shadow : memory->real;
      char *to = to_device ? memory->real : memory->shadow;
      memcpy(to + start, from + start, size);
    }
  }
  pthread_mutex_unlock(&device->lock);
  return result;
}

static VkResult hostile_FlushMappedMemoryRanges(VkDevice handle, uint32_t count,
                                                const VkMappedMemoryRange* ranges) {
  return carry(handle, count, ranges, true);
}

static VkResult hostile_InvalidateMappedMemoryRanges(VkDevice handle, uint32_t count,
                                                     const VkMappedMemoryRange* ranges) {
  return carry(handle, count, ranges, false);
}

static uint32_t all_types(void) { return (1u << memory_properties()->memoryTypeCount) - 1; }

static void adapt(VkMemoryRequirements* required, uint32_t types, VkDeviceSize alignment) {
  required->memoryTypeBits = types & all_types();
  if (alignment > required->alignment) required->alignment = alignment;
  required->size = (required->size + required->alignment - 1) / required->alignment
                   * required->alignment;
}

static VkDeviceSize alignment_of(struct device* device, VkBuffer buffer) {
  bool more = is_concurrent(device, buffer) && profile.buffer_alignment < CONCURRENT;
  return more ? CONCURRENT : profile.buffer_alignment;
}

/* Asks the driver, and adapts what it says to what the profile says of buffers or images. `given` is
 * the handle, or a structure about it. */
#define REQUIREMENTS(name, Given, Found, requirements, types, alignment) \
  static void hostile_Get##name(VkDevice handle, Given given, Found* found) { \
    struct device* device = device_of(handle); \
    device->Get##name(handle, given, found); \
    adapt(requirements, types, alignment); \
  }
REQUIREMENTS(BufferMemoryRequirements, VkBuffer, VkMemoryRequirements, found,
             profile.buffer_types, alignment_of(device, given))
REQUIREMENTS(BufferMemoryRequirements2, const VkBufferMemoryRequirementsInfo2*,
             VkMemoryRequirements2, &found->memoryRequirements,
             profile.buffer_types, alignment_of(device, given->buffer))
REQUIREMENTS(DeviceBufferMemoryRequirements, const VkDeviceBufferMemoryRequirements*,
             VkMemoryRequirements2, &found->memoryRequirements,
             profile.buffer_types, profile.buffer_alignment)
REQUIREMENTS(ImageMemoryRequirements, VkImage, VkMemoryRequirements, found,
             profile.image_types, profile.image_alignment)
REQUIREMENTS(ImageMemoryRequirements2, const VkImageMemoryRequirementsInfo2*,
             VkMemoryRequirements2, &found->memoryRequirements,
             profile.image_types, profile.image_alignment)
REQUIREMENTS(DeviceImageMemoryRequirements, const VkDeviceImageMemoryRequirements*,
             VkMemoryRequirements2, &found->memoryRequirements,
             profile.image_types, profile.image_alignment)

static VkResult hostile_GetMemoryHostPointerPropertiesEXT(
    VkDevice handle, VkExternalMemoryHandleTypeFlagBits type, const void* pointer,
    VkMemoryHostPointerPropertiesEXT* properties) {
  VkResult result = device_of(handle)->GetMemoryHostPointerPropertiesEXT(handle, type, pointer,
                                                                         properties);
  if (result == VK_SUCCESS) properties->memoryTypeBits = profile.import_types & all_types();
  return result;
}

#define FUNCTIONS(X) \
  X(AllocateMemory) X(FreeMemory) X(MapMemory) X(UnmapMemory) X(FlushMappedMemoryRanges) \
  X(InvalidateMappedMemoryRanges) X(GetBufferMemoryRequirements) X(GetImageMemoryRequirements) \
  X(GetBufferMemoryRequirements2) X(GetImageMemoryRequirements2) \
  X(GetDeviceBufferMemoryRequirements) X(GetDeviceImageMemoryRequirements) \
  X(GetMemoryHostPointerPropertiesEXT)
FINDER(memory_function, FUNCTIONS)
