"""Texel formats: how 4 elements of a dtype look to views and images (VkFormat numbers)."""

from __future__ import annotations

from typing import Any

from vkrt.errors import UnsupportedError

TEXEL_FORMATS = {
    "float32": 109,  # R32G32B32A32_SFLOAT
    "float16": 97,  # R16G16B16A16_SFLOAT
    "bfloat16": 95,  # R16G16B16A16_UINT
    "int32": 108,  # R32G32B32A32_SINT
    "int8": 42,  # R8G8B8A8_SINT
    "uint8": 41,  # R8G8B8A8_UINT
    "bool": 41,
}

# VkBufferUsageFlags: transfer source and destination, uniform texel, storage
BUFFER_USAGE = 0x1 | 0x2 | 0x4 | 0x20

# Limits of a kernel's descriptors: kind in messages -> (device limit, types in the library)
DESCRIPTOR_LIMITS = {
    "storage buffers": ("maxPerStageDescriptorStorageBuffers", {"storage_buffer"}),
    "texel views and sampled images": ("maxPerStageDescriptorSampledImages",
                                       {"uniform_texel_buffer", "combined_image_sampler"}),
    "storage images": ("maxPerStageDescriptorStorageImages", {"storage_image"}),
}

STORAGE_BUFFER = 7
# VkDescriptorType by the shader library's names
DESCRIPTOR_TYPES = {
    "combined_image_sampler": 1,
    "storage_image": 3,
    "uniform_texel_buffer": 4,
    "storage_buffer": STORAGE_BUFFER,
}


def check_descriptors(shader: Any, info: Any) -> None:
    """Refuses a shader (`vkrt.shader.Shader`) that binds more than a device (`DeviceInfo`) allows.

    Raises:
        UnsupportedError: it does; the message names the kernel and the limit.
    """
    for what, (limit, types) in DESCRIPTOR_LIMITS.items():
        count, most = sum(b.type in types for b in shader.bindings), info.limits[limit]
        if count > most:
            raise UnsupportedError(f"the kernel {shader.name} reads and writes {count} {what}; "
                                   f"{info.name} allows {most} ({limit})")
