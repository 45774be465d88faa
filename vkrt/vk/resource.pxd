# cython: language_level=3
"""Buffers and images bound into memory blocks."""

cimport cython
from libc.stdint cimport uint32_t, uint64_t

from vkrt.vk.api cimport VkBuffer, VkBufferView, VkImage, VkImageView, VkMemoryRequirements
from vkrt.vk.device cimport Device
from vkrt.vk.memory cimport Block


@cython.final
cdef class Buffer:
    cdef Device device
    # The block it is bound to, or None; and where
    cdef readonly Block block
    cdef readonly uint64_t offset
    cdef VkBuffer handle
    cdef readonly uint64_t size
    # Bound to a block or, without one, to imported memory
    cdef readonly bint bound
    cdef VkMemoryRequirements required

    cdef void destroy(self) noexcept


# Makes sure that a part is in the buffer and not empty.
cdef int check_range(Buffer buffer, uint64_t offset, uint64_t range) except -1


@cython.final
cdef class BufferView:
    cdef Buffer buffer
    cdef Device device
    cdef VkBufferView handle

    cdef void destroy(self) noexcept


@cython.final
cdef class Image:
    cdef Device device
    cdef readonly Block block
    cdef readonly uint64_t offset
    cdef VkImage handle
    cdef VkImageView view_handle
    cdef readonly tuple extent
    cdef readonly int format
    cdef VkMemoryRequirements required

    # The one view of the whole image, created on first use (after bind).
    cdef VkImageView view(self) except NULL
    cdef void destroy(self) noexcept
