# cython: language_level=3
"""Command buffers and fences."""

cimport cython
from libc.stdint cimport uint64_t

from vkrt.core.command cimport CommandBuffer as CoreCommandBuffer
from vkrt.core.command cimport CommandPool as CoreCommandPool
from vkrt.core.fence cimport Fence as CoreFence
from vkrt.core.vulkan cimport VkFlags
from vkrt.vk.device cimport Device


# One thread at a time records into the command buffers of a pool.
@cython.final
cdef class CommandPool:
    cdef Device device
    cdef CoreCommandPool core


@cython.final
cdef class CommandBuffer:
    cdef CommandPool pool
    cdef Device device
    cdef CoreCommandBuffer core

    # The core's functions of these names, with exceptions
    cpdef int begin(self, bint one_time) except -1 nogil
    cpdef int end(self) except -1 nogil
    cpdef void barrier(self, VkFlags source_stages, VkFlags source_access, VkFlags stages,
                       VkFlags access) noexcept nogil
    # Images (each an `Image`)
    cdef int barrier_with_images(self, VkFlags source_stages, VkFlags source_access,
                                 VkFlags stages, VkFlags access, images) except -1


@cython.final
cdef class Fence:
    cdef Device device
    cdef CoreFence core


# Refuses what was closed: drivers crash on a handle that is null.
cdef int check_open(const void* handle) except -1 nogil
# Resets the fence and submits; safe from several threads.
cdef int submit(CommandBuffer commands, Fence fence) except -1 nogil
# 1 when the fence is signaled, 0 when `timeout` nanoseconds passed before. Raises only where the
# device is done with what it was given, because it is lost, or was given up.
cdef int wait(Fence fence, uint64_t timeout) except -1 nogil
