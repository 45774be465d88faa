/* Limits that drivers let pass: what a program creates or binds beyond them loses the device. The
 * validation layer knows more of them, and is not everywhere. */
#include "layer.h"

static void at_most(struct device* device, const char* name, uint64_t value) {
  uint64_t most = limit_or(name, ~0ull);
  if (value > most)
    fault(device, "%llu is more than %s, %llu", (unsigned long long)value, name,
          (unsigned long long)most);
}

static void multiple(struct device* device, const char* name, uint64_t value) {
  uint64_t unit = limit_or(name, 1);
  if (value % unit)
    fault(device, "offset %llu is no multiple of %s, %llu", (unsigned long long)value, name,
          (unsigned long long)unit);
}

static VkResult hostile_CreateDescriptorSetLayout(VkDevice handle,
                                                  const VkDescriptorSetLayoutCreateInfo* info,
                                                  CALLBACKS, VkDescriptorSetLayout* made) {
  struct device* device = device_of(handle);
  uint32_t buffers = 0, sampled = 0, images = 0;
  for (uint32_t i = 0; i < info->bindingCount; i++) {
    const VkDescriptorSetLayoutBinding* binding = &info->pBindings[i];
    switch (binding->descriptorType) {
      case VK_DESCRIPTOR_TYPE_STORAGE_BUFFER:
        buffers += binding->descriptorCount;
        break;
      case VK_DESCRIPTOR_TYPE_STORAGE_IMAGE:
      case VK_DESCRIPTOR_TYPE_STORAGE_TEXEL_BUFFER:
        images += binding->descriptorCount;
        break;
      case VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER:
      case VK_DESCRIPTOR_TYPE_SAMPLED_IMAGE:
      case VK_DESCRIPTOR_TYPE_UNIFORM_TEXEL_BUFFER:
        sampled += binding->descriptorCount;
        break;
      default:
        break;
    }
  }
  at_most(device, "maxPerStageDescriptorStorageBuffers", buffers);
  at_most(device, "maxPerStageDescriptorSampledImages", sampled);
  at_most(device, "maxPerStageDescriptorStorageImages", images);
  return device->CreateDescriptorSetLayout(handle, info, callbacks, made);
}

static VkResult hostile_CreatePipelineLayout(VkDevice handle,
                                             const VkPipelineLayoutCreateInfo* info, CALLBACKS,
                                             VkPipelineLayout* made) {
  struct device* device = device_of(handle);
  for (uint32_t i = 0; i < info->pushConstantRangeCount; i++)
    at_most(device, "maxPushConstantsSize",
            info->pPushConstantRanges[i].offset + info->pPushConstantRanges[i].size);
  return device->CreatePipelineLayout(handle, info, callbacks, made);
}

static uint32_t texel_bytes(VkFormat format) {
  if (format == VK_FORMAT_R8G8B8A8_UINT || format == VK_FORMAT_R8G8B8A8_SINT) return 4;
  return format == VK_FORMAT_R16G16B16A16_SFLOAT ? 8 : 16;
}

static VkResult hostile_CreateBufferView(VkDevice handle, const VkBufferViewCreateInfo* info,
                                         CALLBACKS, VkBufferView* made) {
  struct device* device = device_of(handle);
  multiple(device, "minTexelBufferOffsetAlignment", info->offset);
  if (info->range != VK_WHOLE_SIZE)
    at_most(device, "maxTexelBufferElements", info->range / texel_bytes(info->format));
  VkResult result = device->CreateBufferView(handle, info, callbacks, made);
  if (result == VK_SUCCESS) track_view(device, *made, info->buffer, info->offset, info->range);
  return result;
}

static void hostile_UpdateDescriptorSets(VkDevice handle, uint32_t count,
                                         const VkWriteDescriptorSet* writes, uint32_t copies,
                                         const VkCopyDescriptorSet* copied) {
  struct device* device = device_of(handle);
  for (uint32_t i = 0; i < count; i++) {
    track_write(device, &writes[i]);
    if (writes[i].descriptorType != VK_DESCRIPTOR_TYPE_STORAGE_BUFFER) continue;
    for (uint32_t n = 0; n < writes[i].descriptorCount; n++) {
      multiple(device, "minStorageBufferOffsetAlignment", writes[i].pBufferInfo[n].offset);
      if (writes[i].pBufferInfo[n].range != VK_WHOLE_SIZE)
        at_most(device, "maxStorageBufferRange", writes[i].pBufferInfo[n].range);
    }
  }
  device->UpdateDescriptorSets(handle, count, writes, copies, copied);
}

#define FUNCTIONS(X) \
  X(CreateDescriptorSetLayout) X(CreatePipelineLayout) X(CreateBufferView) X(UpdateDescriptorSets)
FINDER(limit_function, FUNCTIONS)
