"""Descriptor sets: what dispatches are bound to."""

from libc.stdint cimport uint32_t, uint64_t

from vkrt.core.device cimport Device
from vkrt.core.error cimport Error
from vkrt.core.pipeline cimport DescriptorLayout
from vkrt.core.vulkan cimport (
    VkBuffer, VkBufferView, VkDescriptorPool, VkDescriptorSet, VkImageView,
)

# A pool with exactly the room of its sets, which are allocated with it and live as long
cdef struct DescriptorPool:
    Device* device
    VkDescriptorPool handle
    uint32_t size
    # `size` of both: the layout of each set, whose memory outlives the pool
    VkDescriptorSet* sets
    const DescriptorLayout** layouts

cdef extern nogil:
    # A set of each layout, of which there is at least one; they may repeat.
    int make_descriptor_pool "vkrt_make_descriptor_pool"(
        Device* device, const DescriptorLayout* const* layouts, uint32_t size, DescriptorPool* pool,
        Error* error)
    # The device must be done with the sets.
    void close_descriptor_pool "vkrt_close_descriptor_pool"(DescriptorPool* pool)
    # These put something at a binding of set `index`, if it is of the type for that. Kernels trust
    # the range of a buffer (in bytes), and drivers need not check it: whoever writes it does.
    int write_buffer_descriptor "vkrt_write_buffer_descriptor"(
        const DescriptorPool* pool, uint32_t index, uint32_t binding, VkBuffer buffer,
        uint64_t offset, uint64_t range, Error* error)
    int write_texel_descriptor "vkrt_write_texel_descriptor"(const DescriptorPool* pool,
                                                             uint32_t index, uint32_t binding,
                                                             VkBufferView view, Error* error)
    # A sampled one gets the nearest sampler.
    int write_image_descriptor "vkrt_write_image_descriptor"(const DescriptorPool* pool,
                                                             uint32_t index, uint32_t binding,
                                                             VkImageView view, Error* error)
