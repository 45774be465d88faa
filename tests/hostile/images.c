/* Images: one whose layout changes from "undefined" is full of NaN then. */
#include <stdlib.h>
#include <string.h>

#include "layer.h"

struct image {
  struct image* next;
  VkImage handle;
  VkFormat format;
};

void empty_image(struct device* device, VkCommandBuffer handle,
                 const VkImageMemoryBarrier* change) {
  struct image* image = device->images;
  while (image && image->handle != change->image) image = image->next;
  if (!image || change->newLayout != VK_IMAGE_LAYOUT_GENERAL) return;
  bool is_float = image->format == VK_FORMAT_R32G32B32A32_SFLOAT
                  || image->format == VK_FORMAT_R16G16B16A16_SFLOAT;
  VkClearColorValue color;
  for (int i = 0; i < 4; i++) color.uint32[i] = is_float ? 0x7FC00000u : 0x5Au;
  device->CmdClearColorImage(handle, change->image, VK_IMAGE_LAYOUT_GENERAL, &color, 1,
                             &change->subresourceRange);
}

static VkResult VKAPI_CALL hostile_CreateImage(VkDevice handle, const VkImageCreateInfo* info,
                                               const VkAllocationCallbacks* callbacks,
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
  struct image* image = calloc(1, sizeof *image);
  image->handle = *made;
  image->format = info->format;
  pthread_mutex_lock(&device->lock);
  image->next = device->images;
  device->images = image;
  pthread_mutex_unlock(&device->lock);
  return result;
}

static void VKAPI_CALL hostile_DestroyImage(VkDevice handle, VkImage destroyed,
                                            const VkAllocationCallbacks* callbacks) {
  struct device* device = device_of(handle);
  pthread_mutex_lock(&device->lock);
  struct image** place = &device->images;
  while (*place && (*place)->handle != destroyed) place = &(*place)->next;
  struct image* found = *place;
  if (found) *place = found->next;
  pthread_mutex_unlock(&device->lock);
  free(found);
  forget_image(device, destroyed);
  device->DestroyImage(handle, destroyed, callbacks);
}

void close_images(struct device* device) {
  while (device->images) {
    struct image* image = device->images;
    device->images = image->next;
    free(image);
  }
}

PFN_vkVoidFunction image_function(const char* name) {
  if (!profile.reorders) return NULL;
  FUNCTION(name, CreateImage);
  FUNCTION(name, DestroyImage);
  return NULL;
}
