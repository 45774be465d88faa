from libc.stdlib cimport free
from libc.string cimport memcpy, memset

from vkrt.core.atomic cimport atomic_take64
from vkrt.core.capability cimport check_capabilities
from vkrt.core.device cimport (
    check_created, count_destroyed, create_child, destroy_child, retain_device,
)
from vkrt.core.error cimport VKRT_ERROR_CLOSED, VKRT_ERROR_INPUT, VKRT_OK, fail
from vkrt.core.live cimport DESCRIPTOR_LAYOUT, PIPELINE, SHADER_MODULE
from vkrt.core.nan_mode cimport ask_for_nan
from vkrt.core.results cimport check_result
from vkrt.core.vulkan cimport *


cdef int make_shader_module(Device* device, const uint32_t* words, size_t nbytes,
                            ShaderModule* module, Error* error) noexcept nogil:
    cdef VkShaderModuleCreateInfo info
    cdef uint32_t* asking = NULL
    cdef size_t asking_bytes = 0
    cdef int status
    memset(module, 0, sizeof(module[0]))
    if (check_capabilities(words, nbytes, device.features, device.subgroup_operations, device.name,
                           error)
            or ask_for_nan(words, nbytes, &device.nan_modes, &asking, &asking_bytes, error)):
        return error.status
    clear_struct(&info, VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO)
    info.codeSize, info.pCode = nbytes, words
    if asking != NULL:
        info.codeSize, info.pCode = asking_bytes, asking
    module.device = device
    status = create_child(device, SHADER_MODULE, &info, &module.handle, error)
    free(asking)
    return status


cdef void close_shader_module(ShaderModule* module) noexcept nogil:
    destroy_child(module.device, SHADER_MODULE, &module.handle)


cdef int check_layout(const Device* device, const VkDescriptorType* types, uint32_t size,
                      uint32_t push_constant_size, Error* error) noexcept nogil:
    cdef uint32_t i
    if size > MAX_BINDINGS:
        return fail(error, VKRT_ERROR_INPUT, b"%u bindings; at most %d are possible", size,
                    <int>MAX_BINDINGS)
    for i in range(size):
        if not (types[i] == VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER
                or types[i] == VK_DESCRIPTOR_TYPE_STORAGE_IMAGE
                or types[i] == VK_DESCRIPTOR_TYPE_UNIFORM_TEXEL_BUFFER
                or types[i] == VK_DESCRIPTOR_TYPE_STORAGE_BUFFER):
            return fail(error, VKRT_ERROR_INPUT, b"descriptor types: binding %u has %d; possible "
                        b"are %d, %d, %d and %d", i, types[i],
                        <int>VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER,
                        <int>VK_DESCRIPTOR_TYPE_STORAGE_IMAGE,
                        <int>VK_DESCRIPTOR_TYPE_UNIFORM_TEXEL_BUFFER,
                        <int>VK_DESCRIPTOR_TYPE_STORAGE_BUFFER)
    if push_constant_size > device.max_push_constants:
        return fail(error, VKRT_ERROR_INPUT, b"%u bytes of push constants; the device allows %u",
                    push_constant_size, device.max_push_constants)
    return VKRT_OK


cdef int make_set_layout(DescriptorLayout* layout, Error* error) noexcept nogil:
    cdef VkDescriptorSetLayoutBinding[MAX_BINDINGS] bindings
    cdef VkDescriptorSetLayoutCreateInfo info
    cdef uint32_t i
    memset(bindings, 0, sizeof(bindings))
    for i in range(layout.size):
        bindings[i].binding = i
        bindings[i].descriptorType = layout.types[i]
        bindings[i].descriptorCount = 1
        bindings[i].stageFlags = VK_SHADER_STAGE_COMPUTE_BIT
    clear_struct(&info, VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO)
    info.bindingCount = layout.size
    info.pBindings = bindings
    return create_child(layout.device, DESCRIPTOR_LAYOUT, &info, &layout.set_layout, error)


cdef int make_pipeline_layout(DescriptorLayout* layout, Error* error) noexcept nogil:
    cdef VkPushConstantRange push
    cdef VkPipelineLayoutCreateInfo info
    cdef Device* device = layout.device
    cdef VkPipelineLayout handle = VK_NULL_HANDLE
    push.stageFlags = VK_SHADER_STAGE_COMPUTE_BIT
    push.offset = 0
    push.size = layout.push_constant_size
    clear_struct(&info, VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO)
    info.setLayoutCount = 1
    info.pSetLayouts = &layout.set_layout
    info.pushConstantRangeCount = 1 if layout.push_constant_size else 0
    info.pPushConstantRanges = &push
    if check_result(device.vk.vkCreatePipelineLayout(device.handle, &info, NULL, &handle),
                    b"vkCreatePipelineLayout", error):
        return error.status
    layout.pipeline_layout = handle
    return VKRT_OK


cdef int make_descriptor_layout(Device* device, const VkDescriptorType* types, uint32_t size,
                                uint32_t push_constant_size, DescriptorLayout* layout,
                                Error* error) noexcept nogil:
    memset(layout, 0, sizeof(layout[0]))
    if check_layout(device, types, size, push_constant_size, error):
        return error.status
    layout.device = device
    layout.size = size
    memcpy(layout.types, types, size * sizeof(types[0]))
    layout.push_constant_size = push_constant_size
    if make_set_layout(layout, error) or make_pipeline_layout(layout, error):
        close_descriptor_layout(layout)
        return error.status
    return VKRT_OK


cdef void close_descriptor_layout(DescriptorLayout* layout) noexcept nogil:
    cdef VkPipelineLayout pipeline_layout = atomic_take64(&layout.pipeline_layout)
    cdef Device* device = layout.device
    if pipeline_layout != VK_NULL_HANDLE:
        device.vk.vkDestroyPipelineLayout(device.handle, pipeline_layout, NULL)
    destroy_child(device, DESCRIPTOR_LAYOUT, &layout.set_layout)


cdef int write_recipe(Recipe* recipe, const DescriptorLayout* layout, const ShaderModule* module,
                      const Constant* constants, size_t number, Error* error) noexcept nogil:
    cdef uint32_t i
    if module.handle == VK_NULL_HANDLE or layout.pipeline_layout == VK_NULL_HANDLE:
        return fail(error, VKRT_ERROR_CLOSED, b"the shader module or the layout is closed")
    if module.device != layout.device:
        return fail(error, VKRT_ERROR_INPUT, b"the shader module is of another device")
    if number > MAX_CONSTANTS:
        return fail(error, VKRT_ERROR_INPUT, b"%zu constants; at most %d are possible", number,
                    <int>MAX_CONSTANTS)
    memset(recipe, 0, sizeof(recipe[0]))
    for i in range(<uint32_t>number):
        recipe.entries[i].constantID = constants[i].id
        recipe.entries[i].offset = 4 * i
        recipe.entries[i].size = 4
        recipe.values[i] = constants[i].value
    recipe.specialization.mapEntryCount = <uint32_t>number
    recipe.specialization.pMapEntries = recipe.entries
    recipe.specialization.dataSize = 4 * number
    recipe.specialization.pData = recipe.values
    clear_struct(&recipe.info, VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO)
    clear_struct(&recipe.info.stage, VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO)
    recipe.info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT
    recipe.info.stage.module = module.handle
    recipe.info.stage.pName = b"main"
    recipe.info.stage.pSpecializationInfo = &recipe.specialization
    recipe.info.layout = layout.pipeline_layout
    recipe.info.basePipelineIndex = -1
    return VKRT_OK


cdef int compile_recipe(Device* device, const Recipe* recipe, VkPipeline* handle) noexcept nogil:
    return device.vk.vkCreateComputePipelines(device.handle, device.pipeline_cache, 1,
                                              &recipe.info, NULL, handle)


cdef int take_pipeline(Device* device, int result, VkPipeline* handle, Pipeline* pipeline,
                       Error* error) noexcept nogil:
    cdef VkPipeline made = handle[0]
    handle[0] = VK_NULL_HANDLE
    memset(pipeline, 0, sizeof(pipeline[0]))
    if retain_device(device, error):
        if made != VK_NULL_HANDLE:
            device.vk.vkDestroyPipeline(device.handle, made, NULL)
        return error.status
    if check_created(device, result, PIPELINE, b"vkCreateComputePipelines", error):
        return error.status
    pipeline.device = device
    pipeline.handle = made
    return VKRT_OK


cdef int make_pipeline(const DescriptorLayout* layout, const ShaderModule* module,
                       const Constant* constants, size_t number, Pipeline* pipeline,
                       Error* error) noexcept nogil:
    cdef Recipe recipe
    cdef VkPipeline handle = VK_NULL_HANDLE
    memset(pipeline, 0, sizeof(pipeline[0]))
    if write_recipe(&recipe, layout, module, constants, number, error):
        return error.status
    return take_pipeline(layout.device, compile_recipe(layout.device, &recipe, &handle), &handle,
                         pipeline, error)


cdef void close_pipeline(Pipeline* pipeline) noexcept nogil:
    cdef VkPipeline handle = atomic_take64(&pipeline.handle)
    if handle != VK_NULL_HANDLE:
        pipeline.device.vk.vkDestroyPipeline(pipeline.device.handle, handle, NULL)
        count_destroyed(pipeline.device, PIPELINE)
