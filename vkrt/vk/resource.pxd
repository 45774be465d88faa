# cython: language_level=3
"""Buffers and images bound into memory blocks."""

cimport cython
from libc.stdint cimport uint32_t, uint64_t

from vkrt.vk.api cimport VkBuffer, VkBufferView, VkImage, VkImageView, VkMemoryRequirements
from vkrt.vk.device cimport Device
from vkrt.vk.memory cimport Block


cdef class Resource:
    cdef Device device
    # The block it is bound to, or None; and where
    cdef readonly Block block
    cdef readonly uint64_t offset
    # Bound to a block or, without one, to imported memory
    cdef readonly bint bound
    cdef VkMemoryRequirements required

    cdef bint exists(self) noexcept
    cdef int bind_memory(self, Block block, uint64_t offset) except -1
    cdef void destroy(self) noexcept
    cdef void pretend(self)


@cython.final
cdef class Buffer(Resource):
    cdef VkBuffer handle
    cdef bint lent
    cdef readonly uint64_t size


# Makes sure that a part is in the buffer and not empty.
cdef int check_range(Buffer buffer, uint64_t offset, uint64_t range) except -1


@cython.final
cdef class BufferView:
    cdef Buffer buffer
    cdef Device device
    cdef VkBufferView handle

    cdef void destroy(self) noexcept


@cython.final
cdef class Image(Resource):
    cdef VkImage handle
    cdef VkImageView view_handle
    cdef readonly tuple extent
    cdef readonly int format

    # The one view of the whole image, created on first use (after bind).
    cdef VkImageView view(self) except NULL
