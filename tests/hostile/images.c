/* Images: one whose layout changes from "undefined" is full of NaN then. */
#include "tracking.h"

void empty_image(struct device* device, VkCommandBuffer handle,
                 const VkImageMemoryBarrier* change) {
  if (change->newLayout != VK_IMAGE_LAYOUT_GENERAL) return;
  locked(device);
  VkFormat format = OBJECT(device, IMAGE, change->image)->format;
  unlock(device);
  bool is_float =
      format == VK_FORMAT_R32G32B32A32_SFLOAT || format == VK_FORMAT_R16G16B16A16_SFLOAT;
  VkClearColorValue color;
  for (int i = 0; i < 4; i++) color.uint32[i] = is_float ? 0x7FC00000u : 0x5Au;
  device->CmdClearColorImage(handle, change->image, VK_IMAGE_LAYOUT_GENERAL, &color, 1,
                             &change->subresourceRange);
}

static VkResult hostile_CreateImage(VkDevice handle, const VkImageCreateInfo* info, CALLBACKS,
                                    VkImage* made) {
  struct device* device = device_of(handle);
  uint32_t side = info->extent.width;
  if (info->extent.height > side) side = info->extent.height;
  if (info->extent.depth > side) side = info->extent.depth;
  if (info->imageType == VK_IMAGE_TYPE_3D && side > limit_or("maxImageDimension3D", ~0u))
    fault(device, "a side of %u is more than maxImageDimension3D", side);
  VkImageCreateInfo changed = *info;
  changed.usage |= VK_IMAGE_USAGE_TRANSFER_DST_BIT;
  VkResult result = device->CreateImage(handle, &changed, callbacks, made);
  if (result != VK_SUCCESS) return result;
  locked(device);
  OBJECT(device, IMAGE, *made)->format = info->format;
  unlock(device);
  return result;
}

/* The handle may be used again, for another image. */
static void hostile_DestroyImage(VkDevice handle, VkImage image, CALLBACKS) {
  struct device* device = device_of(handle);
  locked(device);
  OBJECT(device, IMAGE, image)->range = (struct range){0};
  unlock(device);
  device->DestroyImage(handle, image, callbacks);
}

#define FUNCTIONS(X) X(CreateImage) X(DestroyImage)
FINDER(image_function, FUNCTIONS)
