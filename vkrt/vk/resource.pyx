# cython: language_level=3
"""Buffers and images, created unbound and bound into memory blocks, and their views: the core's,
with exceptions."""

cimport cython
from libc.stdint cimport uint32_t, uint64_t

from vkrt.core cimport resource as core
from vkrt.core.error cimport Error
from vkrt.core.resource cimport IMPORTED, SHARED, BufferUse
from vkrt.core.vulkan cimport VkBuffer, VkExtent3D, VkMemoryRequirements
from vkrt.vk.check cimport check_status


cdef tuple tuple_of(const VkMemoryRequirements* needs):
    return needs.size, needs.alignment, needs.memoryTypeBits


cdef VkExtent3D extent_of(extent) except *:
    cdef VkExtent3D texels
    texels.width, texels.height, texels.depth = extent
    return texels


@cython.no_gc_clear
cdef class Resource:
    """What buffers and images have in common: they are made without memory, and bound to it once.

    Attributes:
        block, offset: the block it is bound to, or None, and where.
        bound: whether it has its memory: a block's or, for a buffer, imported memory.
    """

    @property
    def bound(self):
        return bool(self.memory.bound)

    @property
    def offset(self):
        return self.memory.offset

    @property
    def requirements(self):
        """(size in bytes, alignment in bytes, bits of the memory types) for its memory."""
        return tuple_of(&self.memory.required)


@cython.no_gc_clear
cdef class Buffer(Resource):
    """A linear buffer, without memory until `bind`.

    Args:
        device: an open device.
        size: bytes.
        usage: VkBufferUsageFlags.
        imported: its memory will be the host's, see `vkrt.vk.imported.HostImport`.
        shared: the queue for copies uses it as well.
        lent: the handle, as a number, of a buffer that somebody else has made and bound to memory,
            and destroys; 0 for a new one.
    """

    def __cinit__(self, Device device not None, uint64_t size, uint32_t usage,
                  bint imported=False, bint shared=False, size_t lent=0):
        cdef int use = (<int>IMPORTED if imported else 0) | (<int>SHARED if shared else 0)
        cdef Error error
        self.device = device
        self.memory = &self.core.memory
        if lent:
            check_status(core.lend_buffer(&self.core, &device.core, <VkBuffer>lent, size, &error),
                         &error)
        else:
            check_status(core.make_buffer(&self.core, &device.core, size, usage, <BufferUse>use,
                                          &error), &error)

    @property
    def size(self):
        return self.core.size

    def bind(self, Block block not None, uint64_t offset):
        """Gives it its memory, once.

        Raises:
            ValueError: the place does not meet the requirements.
        """
        cdef Error error
        check_status(core.bind_buffer(&self.core, &block.core, offset, &error), &error)
        self.block = block

    def close(self):
        """Destroys it; its block stays."""
        core.destroy_buffer(&self.core)
        self.block = None

    def __dealloc__(self):
        core.destroy_buffer(&self.core)


cdef int check_range(Buffer buffer, uint64_t offset, uint64_t range) except -1:
    cdef Error error
    return check_status(core.check_range(&buffer.core, offset, range, &error), &error)


@cython.no_gc_clear
cdef class BufferView:
    """A part of a bound buffer, seen as texels.

    Args:
        buffer: a bound buffer.
        format: VkFormat of a texel.
        offset: bytes, a multiple of `minTexelBufferOffsetAlignment`.
        range: bytes, a multiple of the texel's size.

    Raises:
        ValueError: the buffer is not bound, or the part is empty or reaches beyond its end.
    """

    def __cinit__(self, Buffer buffer not None, int format, uint64_t offset, uint64_t range):
        cdef Error error
        self.buffer = buffer
        check_status(core.make_buffer_view(&self.core, &buffer.core, format, offset, range,
                                           &error), &error)

    def close(self):
        """Destroys the view."""
        core.destroy_buffer_view(&self.core)

    def __dealloc__(self):
        core.destroy_buffer_view(&self.core)


@cython.no_gc_clear
cdef class Image(Resource):
    """A 3-D image, without memory until `bind`.

    Args:
        device: an open device.
        extent: (width, height, depth) in texels.
        format: VkFormat.
        usage: VkImageUsageFlags.
    """

    def __cinit__(self, Device device not None, extent, int format, uint32_t usage):
        cdef Error error
        self.device = device
        self.memory = &self.core.memory
        check_status(core.make_image(&self.core, &device.core, extent_of(extent), format, usage,
                                     &error), &error)

    @property
    def extent(self):
        return self.core.extent.width, self.core.extent.height, self.core.extent.depth

    @property
    def format(self):
        return self.core.format

    def bind(self, Block block not None, uint64_t offset):
        """Gives it its memory, once.

        Raises:
            ValueError: the place does not meet the requirements.
        """
        cdef Error error
        check_status(core.bind_image(&self.core, &block.core, offset, &error), &error)
        self.block = block

    cdef VkImageView view(self) except NULL:
        cdef Error error
        cdef VkImageView view
        check_status(core.get_image_view(&self.core, &view, &error), &error)
        return view

    def close(self):
        """Destroys it; its block stays."""
        core.destroy_image(&self.core)
        self.block = None

    def __dealloc__(self):
        core.destroy_image(&self.core)


def buffer_requirements(Device device not None, uint64_t size, uint32_t usage, bint shared=False):
    """(size, alignment, memory type bits) that a buffer would need, without keeping one.

    Args:
        shared: it may be one of the compute queue alone, or one that the queue for copies uses as
            well: what suits both.
    """
    cdef VkMemoryRequirements needs
    cdef Error error
    check_status(core.buffer_requirements(&device.core, size, usage, shared, &needs, &error),
                 &error)
    return tuple_of(&needs)


def either(needs, others):
    """What suits two requirements (size, alignment, memory type bits) at once."""
    cdef VkMemoryRequirements suits = core.both_requirements(
        VkMemoryRequirements(needs[0], needs[1], needs[2]),
        VkMemoryRequirements(others[0], others[1], others[2]))
    return tuple_of(&suits)


def image_requirements(Device device not None, extent, int format, uint32_t usage):
    """(size, alignment, memory type bits) that a 3-D image would need, without keeping one."""
    cdef VkMemoryRequirements needs
    cdef Error error
    check_status(core.image_requirements(&device.core, extent_of(extent), format, usage, &needs,
                                         &error), &error)
    return tuple_of(&needs)
