from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memset

from vkrt.core.device cimport create_child, destroy_child, get_sampler
from vkrt.core.error cimport (
    VKRT_ERROR_CLOSED, VKRT_ERROR_INPUT, VKRT_ERROR_MEMORY, VKRT_OK, fail,
)
from vkrt.core.live cimport DESCRIPTOR_POOL
from vkrt.core.results cimport check_result
from vkrt.core.vulkan cimport *

cdef enum:
    MAX_TYPES = 8  # as many as `vkrt.core.pipeline` allows, and some


# How many descriptors of each type the sets have; the number of types
cdef uint32_t count_types(const DescriptorPool* pool, VkDescriptorPoolSize* sizes) noexcept nogil:
    cdef uint32_t number = 0
    cdef uint32_t i, binding, place
    cdef VkDescriptorType type
    for i in range(pool.size):
        for binding in range(pool.layouts[i].size):
            type = pool.layouts[i].types[binding]
            place = 0
            while place < number and sizes[place].type != type:
                place += 1
            if place == number:
                sizes[place].type = type
                sizes[place].descriptorCount = 0
                number += 1
            sizes[place].descriptorCount += 1
    if number == 0:
        # Without any binding a pool still needs a size that is not 0.
        sizes[0].type = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER
        sizes[0].descriptorCount = number = 1
    return number


cdef int make_handle(DescriptorPool* pool, Error* error) noexcept nogil:
    cdef VkDescriptorPoolSize[MAX_TYPES] sizes
    cdef VkDescriptorPoolCreateInfo info
    clear_struct(&info, VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO)
    info.maxSets = pool.size
    info.poolSizeCount = count_types(pool, sizes)
    info.pPoolSizes = sizes
    return create_child(pool.device, DESCRIPTOR_POOL, &info, &pool.handle, error)


cdef int allocate_sets(DescriptorPool* pool, Error* error) noexcept nogil:
    cdef VkDescriptorSetAllocateInfo info
    cdef Device* device = pool.device
    cdef uint32_t i
    cdef VkDescriptorSetLayout* handles = <VkDescriptorSetLayout*>calloc(
        pool.size, sizeof(VkDescriptorSetLayout))
    if handles == NULL:
        return fail(error, VKRT_ERROR_MEMORY, b"%u descriptor sets: the host is out of memory",
                    pool.size)
    for i in range(pool.size):
        handles[i] = pool.layouts[i].set_layout
    clear_struct(&info, VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO)
    info.descriptorPool = pool.handle
    info.descriptorSetCount = pool.size
    info.pSetLayouts = handles
    i = check_result(device.vk.vkAllocateDescriptorSets(device.handle, &info, pool.sets),
                     b"vkAllocateDescriptorSets", error)
    free(handles)
    return <int>i


cdef int make(const DescriptorLayout* const* layouts, DescriptorPool* pool,
              Error* error) noexcept nogil:
    cdef uint32_t i
    if pool.size == 0:
        return fail(error, VKRT_ERROR_INPUT, b"a descriptor pool needs at least one set")
    for i in range(pool.size):
        if layouts[i].device != pool.device or layouts[i].set_layout == VK_NULL_HANDLE:
            return fail(error, VKRT_ERROR_CLOSED, b"a layout is closed or of another device")
    pool.sets = <VkDescriptorSet*>calloc(pool.size, sizeof(VkDescriptorSet))
    pool.layouts = <const DescriptorLayout**>calloc(pool.size, sizeof(layouts[0]))
    if pool.sets == NULL or pool.layouts == NULL:
        return fail(error, VKRT_ERROR_MEMORY, b"%u descriptor sets: the host is out of memory",
                    pool.size)
    memcpy(pool.layouts, layouts, pool.size * sizeof(layouts[0]))
    if make_handle(pool, error) or allocate_sets(pool, error):
        return error.status
    return VKRT_OK


cdef int make_descriptor_pool(Device* device, const DescriptorLayout* const* layouts,
                              uint32_t size, DescriptorPool* pool, Error* error) noexcept nogil:
    memset(pool, 0, sizeof(pool[0]))
    pool.device = device
    pool.size = size
    if make(layouts, pool, error):
        close_descriptor_pool(pool)
        return error.status
    return VKRT_OK


cdef void close_descriptor_pool(DescriptorPool* pool) noexcept nogil:
    destroy_child(pool.device, DESCRIPTOR_POOL, &pool.handle)
    free(pool.sets)
    free(pool.layouts)
    pool.sets = NULL
    pool.layouts = NULL
    pool.size = 0


# other: a second type that is possible, or the same again; what: it is for, for the message
cdef int start_write(const DescriptorPool* pool, uint32_t index, uint32_t binding,
                     VkDescriptorType type, VkDescriptorType other, const char* what,
                     VkWriteDescriptorSet* write, Error* error) noexcept nogil:
    cdef const DescriptorLayout* layout
    cdef VkDescriptorType found
    if index >= pool.size:
        return fail(error, VKRT_ERROR_INPUT, b"set %u of a pool of %u", index, pool.size)
    layout = pool.layouts[index]
    if binding >= layout.size:
        return fail(error, VKRT_ERROR_INPUT, b"binding %u of a set of %u", binding, layout.size)
    found = layout.types[binding]
    if found != type and found != other:
        return fail(error, VKRT_ERROR_INPUT, b"binding %u is of descriptor type %d, which is not "
                    b"one of %s", binding, found, what)
    clear_struct(write, VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET)
    write.dstSet = pool.sets[index]
    write.dstBinding = binding
    write.descriptorCount = 1
    write.descriptorType = found
    return VKRT_OK


cdef int write_buffer_descriptor(const DescriptorPool* pool, uint32_t index, uint32_t binding,
                                 VkBuffer buffer, uint64_t offset, uint64_t range,
                                 Error* error) noexcept nogil:
    cdef VkWriteDescriptorSet write
    cdef VkDescriptorBufferInfo info
    if start_write(pool, index, binding, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                   VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, b"a buffer", &write, error):
        return error.status
    info.buffer = buffer
    info.offset = offset
    info.range = range
    write.pBufferInfo = &info
    pool.device.vk.vkUpdateDescriptorSets(pool.device.handle, 1, &write, 0, NULL)
    return VKRT_OK


cdef int write_texel_descriptor(const DescriptorPool* pool, uint32_t index, uint32_t binding,
                                VkBufferView view, Error* error) noexcept nogil:
    cdef VkWriteDescriptorSet write
    if start_write(pool, index, binding, VK_DESCRIPTOR_TYPE_UNIFORM_TEXEL_BUFFER,
                   VK_DESCRIPTOR_TYPE_UNIFORM_TEXEL_BUFFER, b"a texel view", &write, error):
        return error.status
    write.pTexelBufferView = &view
    pool.device.vk.vkUpdateDescriptorSets(pool.device.handle, 1, &write, 0, NULL)
    return VKRT_OK


cdef int write_image_descriptor(const DescriptorPool* pool, uint32_t index, uint32_t binding,
                                VkImageView view, Error* error) noexcept nogil:
    cdef VkWriteDescriptorSet write
    cdef VkDescriptorImageInfo info
    if start_write(pool, index, binding, VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER,
                   VK_DESCRIPTOR_TYPE_STORAGE_IMAGE, b"an image", &write, error):
        return error.status
    info.sampler = VK_NULL_HANDLE
    if (write.descriptorType == VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER
            and get_sampler(pool.device, &info.sampler, error)):
        return error.status
    info.imageView = view
    info.imageLayout = VK_IMAGE_LAYOUT_GENERAL
    write.pImageInfo = &info
    pool.device.vk.vkUpdateDescriptorSets(pool.device.handle, 1, &write, 0, NULL)
    return VKRT_OK
