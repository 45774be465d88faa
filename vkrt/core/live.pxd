"""How many Vulkan objects of each kind there are: tests see by them that nothing is left behind."""

# In the order of `vkrt.vk.check.NAMES`
cdef enum Kind:
    INSTANCE, DEVICE, ALLOCATOR, BLOCK, COMMAND_BUFFER, IMPORT, PIPELINE
    # In the order of VKRT_CHILDREN (`vkrt.core.table`)
    BUFFER, BUFFER_VIEW, IMAGE, IMAGE_VIEW, SHADER_MODULE, DESCRIPTOR_LAYOUT, DESCRIPTOR_POOL
    COMMAND_POOL, FENCE, QUERY_POOL, SEMAPHORE, PIPELINE_CACHE, SAMPLER
    ABANDONED, KINDS

cdef extern nogil:
    void count "vkrt_count"(Kind kind, int change)
    int alive "vkrt_alive"(Kind kind)
