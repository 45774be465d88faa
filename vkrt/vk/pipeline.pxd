# cython: language_level=3
"""Shader modules, layouts, compute pipelines and descriptor sets."""

cimport cython
from libc.stdint cimport uint32_t, uint64_t

from vkrt.vk.api cimport (
    VkComputePipelineCreateInfo, VkDescriptorBufferInfo, VkDescriptorImageInfo, VkDescriptorPool,
    VkDescriptorSet, VkDescriptorSetLayout, VkDescriptorType, VkPipeline,
    VkPipelineLayout, VkResult, VkShaderModule, VkSpecializationInfo, VkSpecializationMapEntry,
    VkWriteDescriptorSet,
)
from vkrt.vk.device cimport Device
from vkrt.vk.resource cimport Buffer, BufferView, Image, check_range


@cython.final
cdef class ShaderModule:
    cdef Device device
    cdef VkShaderModule handle

    cdef void destroy(self) noexcept


# The types of the bindings 0, 1, .. of set 0 and the size of the push constants: what a set and a
# pipeline have to agree on.
@cython.final
cdef class DescriptorLayout:
    cdef object __weakref__
    cdef Device device
    cdef VkDescriptorSetLayout set_layout
    cdef VkPipelineLayout pipeline_layout
    # One VkDescriptorType for each binding
    cdef readonly tuple types
    cdef readonly uint32_t push_constant_size

    cdef void destroy(self) noexcept


@cython.final
cdef class Pipeline:
    cdef object __weakref__
    cdef readonly DescriptorLayout layout
    cdef Device device
    cdef VkPipeline handle

    # Takes what the driver made; raises for a failure.
    cdef int take(self, VkResult result, VkPipeline handle) except -1
    cdef void destroy(self) noexcept


# What the driver makes a pipeline of. It points into itself and must not be moved.
cdef struct Recipe:
    VkComputePipelineCreateInfo info
    VkSpecializationInfo specialization
    VkSpecializationMapEntry[64] entries
    uint32_t[64] values


cdef int write_recipe(Recipe* recipe, DescriptorLayout layout, ShaderModule module,
                      constants) except -1


# A pool with exactly the room of its sets, which are allocated with it and live as long.
@cython.final
cdef class DescriptorPool:
    cdef Device device
    cdef VkDescriptorPool handle
    cdef VkDescriptorSet* sets
    # Number of sets, and the layout of each
    cdef readonly uint32_t size
    cdef tuple layouts

    cpdef int write_buffer(self, uint32_t index, uint32_t binding, Buffer buffer, uint64_t offset,
                           uint64_t range) except -1
    cpdef int write_texel(self, uint32_t index, uint32_t binding, BufferView view) except -1
    cpdef int write_image(self, uint32_t index, uint32_t binding, Image image) except -1
    cdef int start_write(self, VkWriteDescriptorSet* write, uint32_t index,
                         uint32_t binding, possible) except -1
    cdef void update(self, const VkWriteDescriptorSet* write) noexcept
    cdef void destroy(self) noexcept
