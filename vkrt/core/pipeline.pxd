"""Shader modules, layouts of descriptors, and compute pipelines.

All of it is made while a program is loaded; an inference only uses the handles.
"""

from libc.stdint cimport uint32_t

from vkrt.core.device cimport Device
from vkrt.core.error cimport Error
from vkrt.core.vulkan cimport (
    VkComputePipelineCreateInfo, VkDescriptorSetLayout, VkDescriptorType, VkPipeline,
    VkPipelineLayout, VkShaderModule, VkSpecializationInfo, VkSpecializationMapEntry,
)

cdef enum:
    MAX_BINDINGS = 64
    MAX_CONSTANTS = 64

# Needed only until its pipelines exist
cdef struct ShaderModule:
    Device* device
    VkShaderModule handle

# The types of the bindings 0, 1, .. of set 0 and the size of the push constants: what a set and a
# pipeline have to agree on
cdef struct DescriptorLayout:
    Device* device
    VkDescriptorSetLayout set_layout
    VkPipelineLayout pipeline_layout
    uint32_t size
    VkDescriptorType[MAX_BINDINGS] types
    uint32_t push_constant_size

cdef struct Pipeline:
    Device* device
    VkPipeline handle

# Of a specialization: floats as their bits
cdef struct Constant:
    uint32_t id
    uint32_t value

# What the driver makes a pipeline of. It points into itself and must not be moved.
cdef struct Recipe:
    VkComputePipelineCreateInfo info
    VkSpecializationInfo specialization
    VkSpecializationMapEntry[MAX_CONSTANTS] entries
    uint32_t[MAX_CONSTANTS] values

cdef extern nogil:
    # Refuses what the device may not be given, see `vkrt.core.capability`.
    int make_shader_module "vkrt_make_shader_module"(
        Device* device, const uint32_t* words, size_t nbytes, ShaderModule* module, Error* error)
    # Pipelines made of it stay.
    void close_shader_module "vkrt_close_shader_module"(ShaderModule* module)
    # push_constant_size: bytes, a multiple of 4
    int make_descriptor_layout "vkrt_make_descriptor_layout"(
        Device* device, const VkDescriptorType* types, uint32_t size, uint32_t push_constant_size,
        DescriptorLayout* layout, Error* error)
    # Pipelines and sets made with it stay.
    void close_descriptor_layout "vkrt_close_descriptor_layout"(DescriptorLayout* layout)
    # Layout and module have to outlive the use of the recipe.
    int write_recipe "vkrt_write_recipe"(Recipe* recipe, const DescriptorLayout* layout,
                                         const ShaderModule* module, const Constant* constants,
                                         size_t number, Error* error)
    # Lets the driver compile a recipe; the result is a VkResult.
    int compile_recipe "vkrt_compile_recipe"(Device* device, const Recipe* recipe,
                                             VkPipeline* handle)
    # A pipeline of what the driver has made: this result, and this handle, which is NULL
    # afterwards.
    int take_pipeline "vkrt_take_pipeline"(Device* device, int result, VkPipeline* handle,
                                           Pipeline* pipeline, Error* error)
    int make_pipeline "vkrt_make_pipeline"(const DescriptorLayout* layout,
                                           const ShaderModule* module, const Constant* constants,
                                           size_t number, Pipeline* pipeline, Error* error)
    # The device must be done with it.
    void close_pipeline "vkrt_close_pipeline"(Pipeline* pipeline)
