"""Buffers: the core's, with exceptions."""

cimport cython
from libc.stdint cimport uint32_t, uint64_t

from vkrt.core.error cimport Error
from vkrt.core.resource cimport COMPUTE_ONLY, close_buffer, adopt_buffer, make_buffer
from vkrt.core.vulkan cimport VkBuffer
from vkrt.vk.check cimport check_status


@cython.no_gc_clear
cdef class Buffer:
    """A linear buffer.

    Args:
        device: an open device.
        size: bytes.
        usage: VkBufferUsageFlags.
        external: the handle, as a number, of a buffer that somebody else has made and bound to
            memory, and destroys; 0 for a new one, which has no memory.
    """

    def __cinit__(self, Device device not None, uint64_t size, uint32_t usage, VkBuffer external=0):
        cdef Error error
        self.device = device
        if external:
            check_status(adopt_buffer(&self.core, &device.core, external, size, &error), &error)
        else:
            check_status(make_buffer(&device.core, size, usage, COMPUTE_ONLY, &self.core, &error),
                         &error)

    @property
    def size(self):
        return self.core.size

    def close(self):
        """Destroys it."""
        close_buffer(&self.core)

    def __dealloc__(self):
        close_buffer(&self.core)
