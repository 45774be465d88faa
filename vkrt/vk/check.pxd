# cython: language_level=3
"""The error funnel and the live-object counters."""

from vkrt.vk.api cimport VkResult

# What the counters count.
cdef enum Kind:
    INSTANCE
    DEVICE
    ALLOCATOR
    BLOCK
    BUFFER
    BUFFER_VIEW
    IMAGE
    IMAGE_VIEW
    SHADER_MODULE
    DESCRIPTOR_LAYOUT
    PIPELINE
    DESCRIPTOR_POOL
    COMMAND_POOL
    COMMAND_BUFFER
    FENCE
    QUERY_POOL
    SEMAPHORE
    IMPORT
    PIPELINE_CACHE
    SAMPLER
    ABANDONED
    KINDS

# Raises for a negative result, returns a non-negative one (VK_SUCCESS, VK_TIMEOUT, ..).
cdef int check(VkResult result, const char* call) except -1 nogil
# Needs the GIL, which orders the increments.
cdef void count(Kind kind, int change) noexcept
