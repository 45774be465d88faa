# cython: language_level=3
"""Buffers and images bound into memory blocks."""

cimport cython
from libc.stdint cimport uint32_t, uint64_t

from vkrt.core.resource cimport Buffer as CoreBuffer
from vkrt.core.resource cimport BufferView as CoreBufferView
from vkrt.core.resource cimport Image as CoreImage
from vkrt.core.resource cimport MemoryBinding
from vkrt.core.vulkan cimport VkImageView
from vkrt.vk.device cimport Device
from vkrt.vk.memory cimport Block


cdef class Resource:
    cdef Device device
    # Of the buffer or image that it is
    cdef MemoryBinding* memory
    # The block it is bound to, or None
    cdef readonly Block block


@cython.final
cdef class Buffer(Resource):
    cdef CoreBuffer core


# Makes sure that a part is in the buffer and not empty.
cdef int check_range(Buffer buffer, uint64_t offset, uint64_t range) except -1


@cython.final
cdef class BufferView:
    cdef Buffer buffer
    cdef CoreBufferView core


@cython.final
cdef class Image(Resource):
    cdef CoreImage core

    # The one view of the whole image, created on first use (after bind).
    cdef VkImageView view(self) except NULL
