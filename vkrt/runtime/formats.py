"""Texel formats: how 4 elements of a dtype look to views and images (VkFormat numbers)."""

TEXEL_FORMATS = {
    "float32": 109,  # R32G32B32A32_SFLOAT
    "float16": 97,  # R16G16B16A16_SFLOAT
    "int32": 108,  # R32G32B32A32_SINT
    "int8": 42,  # R8G8B8A8_SINT
    "uint8": 41,  # R8G8B8A8_UINT
    "bool": 41,
}

# VkBufferUsageFlags: transfer source and destination, uniform and storage texel, storage
BUFFER_USAGE = 0x1 | 0x2 | 0x4 | 0x8 | 0x20
# VkImageUsageFlags: transfer source and destination, sampled, storage
IMAGE_USAGE = 0x1 | 0x2 | 0x4 | 0x8

STORAGE_BUFFER = 7
# VkDescriptorType by the catalog's names
DESCRIPTOR_TYPES = {
    "combined_image_sampler": 1,
    "storage_image": 3,
    "uniform_texel_buffer": 4,
    "storage_texel_buffer": 5,
    "storage_buffer": STORAGE_BUFFER,
}
