# cython: language_level=3
"""Shader modules, layouts, compute pipelines and descriptor sets.

All of it is made while a program is loaded; an inference only uses the handles.
"""

cimport cython
from libc.stdint cimport uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from vkrt.vk.api cimport *
from vkrt.vk.check cimport (
    DESCRIPTOR_LAYOUT, DESCRIPTOR_POOL, PIPELINE, SHADER_MODULE, check,
)

from vkrt.vk.capability import check_capabilities

# Descriptor types that each write_ method fills
BUFFERS = (VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,)
TEXELS = (VK_DESCRIPTOR_TYPE_UNIFORM_TEXEL_BUFFER,)
IMAGES = (VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER, VK_DESCRIPTOR_TYPE_STORAGE_IMAGE)
TYPES = frozenset(BUFFERS + TEXELS + IMAGES)

cdef int MAX_BINDINGS = 64
cdef int MAX_CONSTANTS = 64


@cython.no_gc_clear
cdef class ShaderModule:
    """A compute shader. Needed only until its pipelines exist.

    Args:
        device: an open device.
        spirv: the SPIR-V words as bytes.

    Raises:
        UnsupportedError: it declares a capability that the device does not have.
        ValueError: not a SPIR-V module.
    """

    def __cinit__(self, Device device not None, bytes spirv not None):
        cdef VkShaderModuleCreateInfo info
        cdef VkShaderModule handle = NULL
        cdef VkResult result
        check_capabilities(spirv, device.features, device.info.name)
        memset(&info, 0, sizeof(info))
        info.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO
        info.codeSize = len(spirv)
        # The data of a bytes object is aligned for words.
        info.pCode = <const uint32_t*><const char*>spirv
        device.retain()
        self.device = device
        with nogil:
            result = device.vk.vkCreateShaderModule(device.handle, &info, NULL, &handle)
        device.created(result, SHADER_MODULE, b"vkCreateShaderModule")
        self.handle = handle

    def close(self):
        """Destroys the module; pipelines made of it stay."""
        self.destroy()

    cdef void destroy(self) noexcept:
        cdef VkShaderModule handle = self.handle
        if handle == NULL:
            return
        self.handle = NULL
        self.device.vk.vkDestroyShaderModule(self.device.handle, handle, NULL)
        self.device.destroyed(SHADER_MODULE)

    def __dealloc__(self):
        self.destroy()


@cython.no_gc_clear
cdef class DescriptorLayout:
    """What a pipeline is given: the bindings of its one set, and its push constants.

    Args:
        device: an open device.
        types: the VkDescriptorType of each binding from 0.
        push_constant_size: bytes, a multiple of 4, at most `maxPushConstantsSize`.
    """

    def __cinit__(self, Device device not None, types, uint32_t push_constant_size=0):
        cdef VkDescriptorSetLayoutBinding bindings[64]
        cdef VkDescriptorSetLayoutCreateInfo set_info
        cdef VkPushConstantRange push
        cdef VkPipelineLayoutCreateInfo info
        cdef VkDescriptorSetLayout set_layout = NULL
        cdef VkPipelineLayout pipeline_layout = NULL
        cdef int i
        cdef VkResult result
        self.types = tuple(types)
        if len(self.types) > MAX_BINDINGS:
            raise ValueError(f"{len(self.types)} bindings; at most {MAX_BINDINGS} are possible")
        if not TYPES.issuperset(self.types):
            raise ValueError(f"descriptor types {self.types}; possible are {sorted(TYPES)}")
        limit = device.info.limits["maxPushConstantsSize"]
        if push_constant_size > limit:
            raise ValueError(f"{push_constant_size} bytes of push constants; the device allows "
                             f"{limit}")
        memset(bindings, 0, sizeof(bindings))
        for i, kind in enumerate(self.types):
            bindings[i].binding = i
            bindings[i].descriptorType = kind
            bindings[i].descriptorCount = 1
            bindings[i].stageFlags = VK_SHADER_STAGE_COMPUTE_BIT
        memset(&set_info, 0, sizeof(set_info))
        set_info.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO
        set_info.bindingCount = len(self.types)
        set_info.pBindings = bindings
        push.stageFlags = VK_SHADER_STAGE_COMPUTE_BIT
        push.offset = 0
        push.size = push_constant_size
        memset(&info, 0, sizeof(info))
        info.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO
        info.setLayoutCount = 1
        info.pSetLayouts = &set_layout
        info.pushConstantRangeCount = 1 if push_constant_size else 0
        info.pPushConstantRanges = &push

        device.retain()
        self.device = device
        device.created(
            device.vk.vkCreateDescriptorSetLayout(device.handle, &set_info, NULL, &set_layout),
            DESCRIPTOR_LAYOUT, b"vkCreateDescriptorSetLayout")
        self.set_layout = set_layout
        # From here on __dealloc__ releases what a failure leaves.
        result = device.vk.vkCreatePipelineLayout(device.handle, &info, NULL, &pipeline_layout)
        check(result, b"vkCreatePipelineLayout")
        self.pipeline_layout = pipeline_layout
        self.push_constant_size = push_constant_size

    def close(self):
        """Destroys the layouts; pipelines and sets made with them stay."""
        self.destroy()

    cdef void destroy(self) noexcept:
        cdef VkDescriptorSetLayout set_layout = self.set_layout
        if set_layout == NULL:
            return
        self.set_layout = NULL
        if self.pipeline_layout != NULL:
            self.device.vk.vkDestroyPipelineLayout(self.device.handle, self.pipeline_layout, NULL)
            self.pipeline_layout = NULL
        self.device.vk.vkDestroyDescriptorSetLayout(self.device.handle, set_layout, NULL)
        self.device.destroyed(DESCRIPTOR_LAYOUT)

    def __dealloc__(self):
        self.destroy()


cdef int write_recipe(Recipe* recipe, DescriptorLayout layout, ShaderModule module,
                      constants) except -1:
    """Writes what the driver makes a pipeline of; layout and module have to outlive its use."""
    cdef int i
    if module.device is not layout.device:
        raise ValueError("the shader module is of another device")
    if module.handle == NULL or layout.pipeline_layout == NULL:
        raise ValueError("the shader module or the layout is closed")
    if len(constants) > MAX_CONSTANTS:
        raise ValueError(f"{len(constants)} constants; at most {MAX_CONSTANTS} are possible")
    memset(recipe, 0, sizeof(Recipe))
    for i, (number, value) in enumerate(constants):
        recipe.entries[i].constantID = number
        recipe.entries[i].offset = 4 * i
        recipe.entries[i].size = 4
        recipe.values[i] = value & 0xFFFFFFFF
    recipe.specialization.mapEntryCount = len(constants)
    recipe.specialization.pMapEntries = recipe.entries
    recipe.specialization.dataSize = 4 * len(constants)
    recipe.specialization.pData = recipe.values
    recipe.info.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO
    recipe.info.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO
    recipe.info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT
    recipe.info.stage.module = module.handle
    recipe.info.stage.pName = b"main"
    recipe.info.stage.pSpecializationInfo = &recipe.specialization
    recipe.info.layout = layout.pipeline_layout
    recipe.info.basePipelineIndex = -1
    return 0


@cython.no_gc_clear
cdef class Pipeline:
    """A compute pipeline. The GIL is released while the driver compiles it.

    Args:
        layout: its bindings and push constants.
        module: the shader; None for one that a `PipelineBatch` makes.
        constants: specialization constants as (id, 32-bit int) pairs; floats as their bits.
    """

    def __cinit__(self, DescriptorLayout layout not None, ShaderModule module, constants=()):
        cdef Device device = layout.device
        cdef Recipe recipe
        cdef VkPipeline handle = NULL
        cdef VkResult result
        self.layout = layout
        if module is None:
            return
        write_recipe(&recipe, layout, module, constants)
        with nogil:
            result = device.vk.vkCreateComputePipelines(
                device.handle, device.pipeline_cache, 1, &recipe.info, NULL, &handle)
        self.take(result, handle)

    cdef int take(self, VkResult result, VkPipeline handle) except -1:
        cdef Device device = self.layout.device
        try:
            device.retain()
        except ValueError:
            if handle != NULL:
                device.vk.vkDestroyPipeline(device.handle, handle, NULL)
            raise
        self.device = device
        device.created(result, PIPELINE, b"vkCreateComputePipelines")
        self.handle = handle
        return 0

    def close(self):
        """Destroys the pipeline; the device must be done with it."""
        self.destroy()

    cdef void destroy(self) noexcept:
        cdef VkPipeline handle = self.handle
        if handle == NULL:
            return
        self.handle = NULL
        self.device.vk.vkDestroyPipeline(self.device.handle, handle, NULL)
        self.device.destroyed(PIPELINE)

    def __dealloc__(self):
        self.destroy()


@cython.no_gc_clear
cdef class DescriptorPool:
    """Descriptor sets, all allocated at once from a pool of exactly their size.

    Args:
        device: an open device.
        layouts: the `DescriptorLayout` of each set, at least one; they may repeat.
    """

    def __cinit__(self, Device device not None, layouts):
        cdef VkDescriptorPoolSize sizes[8]  # as many as TYPES has, and some
        cdef VkDescriptorPoolCreateInfo info
        cdef VkDescriptorSetAllocateInfo allocate
        cdef VkDescriptorSetLayout* handles = NULL
        cdef VkDescriptorPool handle = NULL
        cdef DescriptorLayout layout
        cdef int i
        self.layouts = tuple(layouts)
        if not self.layouts:
            raise ValueError("a descriptor pool needs at least one set")
        counts = {}
        for layout in self.layouts:
            if layout is None or layout.device is not device or layout.set_layout == NULL:
                raise ValueError("a layout is closed or of another device")
            for kind in layout.types:
                counts[kind] = counts.get(kind, 0) + 1
        # Without any binding a pool still needs a size that is not 0.
        counts = counts or {VK_DESCRIPTOR_TYPE_STORAGE_BUFFER: 1}
        for i, (kind, number) in enumerate(counts.items()):
            sizes[i].type = kind
            sizes[i].descriptorCount = number
        self.size = len(self.layouts)
        self.sets = <VkDescriptorSet*>calloc(self.size, sizeof(VkDescriptorSet))
        handles = <VkDescriptorSetLayout*>calloc(self.size, sizeof(VkDescriptorSetLayout))
        try:
            if self.sets == NULL or handles == NULL:
                raise MemoryError
            for i, layout in enumerate(self.layouts):
                handles[i] = layout.set_layout
            memset(&info, 0, sizeof(info))
            info.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO
            info.maxSets = self.size
            info.poolSizeCount = len(counts)
            info.pPoolSizes = sizes
            device.retain()
            self.device = device
            device.created(device.vk.vkCreateDescriptorPool(device.handle, &info, NULL, &handle),
                           DESCRIPTOR_POOL, b"vkCreateDescriptorPool")
            self.handle = handle
            memset(&allocate, 0, sizeof(allocate))
            allocate.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO
            allocate.descriptorPool = handle
            allocate.descriptorSetCount = self.size
            allocate.pSetLayouts = handles
            # A failure is released by __dealloc__.
            check(device.vk.vkAllocateDescriptorSets(device.handle, &allocate, self.sets),
                  b"vkAllocateDescriptorSets")
        finally:
            free(handles)

    cdef int start_write(self, VkWriteDescriptorSet* write, uint32_t index,
                         uint32_t binding, possible) except -1:
        if self.handle == NULL or index >= self.size:
            raise IndexError(f"set {index} of a pool of {self.size if self.handle else 0}")
        types = (<DescriptorLayout>self.layouts[index]).types
        if binding >= <uint32_t>len(types):
            raise IndexError(f"binding {binding} of a set of {len(types)}")
        if types[binding] not in possible:
            raise ValueError(f"binding {binding} is of descriptor type {types[binding]}, not one "
                             f"of {possible}")
        memset(write, 0, sizeof(VkWriteDescriptorSet))
        write.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET
        write.dstSet = self.sets[index]
        write.dstBinding = binding
        write.descriptorCount = 1
        write.descriptorType = types[binding]
        return 0

    cdef void update(self, const VkWriteDescriptorSet* write) noexcept:
        self.device.vk.vkUpdateDescriptorSets(self.device.handle, 1, write, 0, NULL)

    cpdef int write_buffer(self, uint32_t index, uint32_t binding, Buffer buffer, uint64_t offset,
                           uint64_t range) except -1:
        """Puts a part of a bound buffer (offset and range in bytes) at a binding of set `index`."""
        cdef VkWriteDescriptorSet write
        cdef VkDescriptorBufferInfo info
        if buffer is None or not buffer.bound:
            raise ValueError("the buffer is not bound")
        check_range(buffer, offset, range)
        self.start_write(&write, index, binding, BUFFERS)
        info.buffer = buffer.handle
        info.offset = offset
        info.range = range
        write.pBufferInfo = &info
        self.update(&write)
        return 0

    cpdef int write_texel(self, uint32_t index, uint32_t binding, BufferView view) except -1:
        """Puts a texel view at a binding of set `index`."""
        cdef VkWriteDescriptorSet write
        if view is None or view.handle == NULL:
            raise ValueError("the view is closed")
        self.start_write(&write, index, binding, TEXELS)
        write.pTexelBufferView = &view.handle
        self.update(&write)
        return 0

    cpdef int write_image(self, uint32_t index, uint32_t binding, Image image) except -1:
        """Puts an image at a binding of set `index`; a sampled one with the nearest sampler."""
        cdef VkWriteDescriptorSet write
        cdef VkDescriptorImageInfo info
        if image is None:
            raise ValueError("there is no image")
        self.start_write(&write, index, binding, IMAGES)
        info.sampler = NULL
        if write.descriptorType == VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER:
            info.sampler = self.device.sampler()
        info.imageView = image.view()
        info.imageLayout = VK_IMAGE_LAYOUT_GENERAL
        write.pImageInfo = &info
        self.update(&write)
        return 0

    def close(self):
        """Destroys the pool with its sets; the device must be done with them."""
        self.destroy()

    cdef void destroy(self) noexcept:
        cdef VkDescriptorPool handle = self.handle
        free(self.sets)
        self.sets = NULL
        self.layouts = None
        if handle == NULL:
            return
        self.handle = NULL
        self.device.vk.vkDestroyDescriptorPool(self.device.handle, handle, NULL)
        self.device.destroyed(DESCRIPTOR_POOL)

    def __dealloc__(self):
        self.destroy()
