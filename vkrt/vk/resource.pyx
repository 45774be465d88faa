# cython: language_level=3
"""Buffers and images, created unbound and bound into memory blocks, and their views."""

cimport cython
from libc.stdint cimport uint32_t, uint64_t
from libc.string cimport memset

from vkrt.vk.api cimport *
from vkrt.vk.check cimport BUFFER, BUFFER_VIEW, IMAGE, IMAGE_VIEW, check, count
from vkrt.vk.device cimport Device
from vkrt.vk.memory cimport Block


@cython.no_gc_clear
cdef class Resource:
    """What buffers and images have in common: they are made without memory, and bound to it once.

    Attributes:
        block, offset: the block it is bound to, or None, and where.
        bound: whether it has its memory: a block's or, for a buffer, imported memory.
    """

    @property
    def requirements(self):
        """(size in bytes, alignment in bytes, bits of the memory types) for its memory."""
        return self.required.size, self.required.alignment, self.required.memoryTypeBits

    def bind(self, Block block not None, uint64_t offset):
        """Gives it its memory, once.

        Raises:
            ValueError: the place does not meet the requirements.
        """
        cdef VkMemoryRequirements* required = &self.required
        if not self.exists() or self.bound:
            raise ValueError("the buffer or image is closed or bound already")
        if block.handle == NULL:
            raise ValueError("the block is closed")
        if block.allocator.device is not self.device:
            raise ValueError("the block is of another device")
        if not required.memoryTypeBits >> block.memory_type & 1:
            raise ValueError(f"memory type {block.memory_type} does not suit")
        if offset % required.alignment or offset > block.size or (
                required.size > block.size - offset):
            raise ValueError(f"{required.size} bytes (alignment {required.alignment}) at {offset} "
                             f"of a block of {block.size}")
        self.bind_memory(block, offset)
        self.block = block
        self.offset = offset
        self.bound = True

    def close(self):
        """Destroys it; its block stays."""
        self.destroy()

    cdef bint exists(self) noexcept:
        return False

    cdef int bind_memory(self, Block block, uint64_t offset) except -1:
        return 0

    cdef void destroy(self) noexcept:
        pass

    cdef void pretend(self):
        """Where the memory types are not the driver's, all of them suit."""
        if self.device.pretends:
            self.required.memoryTypeBits = (1 << len(self.device.info.memory_types)) - 1


@cython.no_gc_clear
cdef class Buffer(Resource):
    """A linear buffer, without memory until `bind`.

    Args:
        device: an open device.
        size: bytes.
        usage: VkBufferUsageFlags.
        imported: its memory will be the host's, see `vkrt.vk.imported.HostImport`.
        shared: the queue for copies uses it as well.
        lent: the handle, as a number, of a buffer that the host has made and bound to memory, and
            destroys itself; 0 for a new one.
    """

    def __cinit__(self, Device device not None, uint64_t size, uint32_t usage,
                  bint imported=False, bint shared=False, size_t lent=0):
        cdef uint32_t[2] families
        cdef VkBufferCreateInfo info
        cdef VkExternalMemoryBufferCreateInfo external
        cdef VkBuffer handle = NULL
        if size == 0:
            raise ValueError("a buffer needs at least one byte")
        if lent:
            self.device = device
            self.size = size
            self.handle = <VkBuffer>lent
            self.lent = self.bound = True
            return
        device.retain()
        self.device = device
        self.size = size
        memset(&info, 0, sizeof(info))
        info.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO
        info.size = size
        info.usage = usage
        info.sharingMode = VK_SHARING_MODE_EXCLUSIVE
        if imported:
            memset(&external, 0, sizeof(external))
            external.sType = VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO
            external.handleTypes = VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT
            info.pNext = &external
        families[0], families[1] = device.queue_family, device.upload_family
        if shared and families[0] != families[1]:
            info.sharingMode = VK_SHARING_MODE_CONCURRENT
            info.queueFamilyIndexCount = 2
            info.pQueueFamilyIndices = families
        device.created(device.vk.vkCreateBuffer(device.handle, &info, NULL, &handle), BUFFER,
                       b"vkCreateBuffer")
        self.handle = handle
        device.vk.vkGetBufferMemoryRequirements(device.handle, handle, &self.required)
        self.pretend()

    cdef bint exists(self) noexcept:
        return self.handle != NULL

    cdef int bind_memory(self, Block block, uint64_t offset) except -1:
        return block.bind_buffer(self.handle, offset)

    cdef void destroy(self) noexcept:
        cdef VkBuffer handle = self.handle
        if handle == NULL:
            return
        self.handle = NULL
        self.block = None
        self.bound = False
        if self.lent:
            return
        self.device.vk.vkDestroyBuffer(self.device.handle, handle, NULL)
        self.device.destroyed(BUFFER)

    def __dealloc__(self):
        self.destroy()


cdef int check_range(Buffer buffer, uint64_t offset, uint64_t range) except -1:
    # Kernels trust the range of a descriptor, and drivers need not check it.
    if not range or offset > buffer.size or range > buffer.size - offset:
        raise ValueError(f"{range} bytes at {offset} of a buffer of {buffer.size}")
    return 0


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
        cdef VkBufferViewCreateInfo info
        cdef VkBufferView handle = NULL
        cdef Device device = buffer.device
        if not buffer.bound:
            raise ValueError("the buffer is not bound")
        check_range(buffer, offset, range)
        device.retain()
        self.device = device
        self.buffer = buffer
        memset(&info, 0, sizeof(info))
        info.sType = VK_STRUCTURE_TYPE_BUFFER_VIEW_CREATE_INFO
        info.buffer = buffer.handle
        info.format = format
        info.offset = offset
        info.range = range
        device.created(device.vk.vkCreateBufferView(device.handle, &info, NULL, &handle),
                       BUFFER_VIEW, b"vkCreateBufferView")
        self.handle = handle

    def close(self):
        """Destroys the view."""
        self.destroy()

    cdef void destroy(self) noexcept:
        cdef VkBufferView handle = self.handle
        if handle == NULL:
            return
        self.handle = NULL
        self.device.vk.vkDestroyBufferView(self.device.handle, handle, NULL)
        self.device.destroyed(BUFFER_VIEW)

    def __dealloc__(self):
        self.destroy()


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
        cdef VkImageCreateInfo info
        cdef VkImage handle = NULL
        memset(&info, 0, sizeof(info))
        info.sType = VK_STRUCTURE_TYPE_IMAGE_CREATE_INFO
        info.imageType = VK_IMAGE_TYPE_3D
        info.format = format
        info.extent.width, info.extent.height, info.extent.depth = extent
        if 0 in tuple(extent):
            raise ValueError(f"an image of {extent} texels")
        info.mipLevels = 1
        info.arrayLayers = 1
        info.samples = VK_SAMPLE_COUNT_1_BIT
        info.tiling = VK_IMAGE_TILING_OPTIMAL
        info.usage = usage
        info.sharingMode = VK_SHARING_MODE_EXCLUSIVE
        info.initialLayout = VK_IMAGE_LAYOUT_UNDEFINED
        device.retain()
        self.device = device
        self.extent = tuple(extent)
        self.format = format
        device.created(device.vk.vkCreateImage(device.handle, &info, NULL, &handle), IMAGE,
                       b"vkCreateImage")
        self.handle = handle
        device.vk.vkGetImageMemoryRequirements(device.handle, handle, &self.required)
        self.pretend()

    cdef bint exists(self) noexcept:
        return self.handle != NULL

    cdef int bind_memory(self, Block block, uint64_t offset) except -1:
        return block.bind_image(self.handle, offset)

    cdef VkImageView view(self) except NULL:
        cdef VkImageViewCreateInfo info
        cdef VkImageView view = NULL
        if self.view_handle != NULL:
            return self.view_handle
        if not self.bound:
            raise ValueError("the image is not bound")
        memset(&info, 0, sizeof(info))
        info.sType = VK_STRUCTURE_TYPE_IMAGE_VIEW_CREATE_INFO
        info.image = self.handle
        info.viewType = VK_IMAGE_VIEW_TYPE_3D
        info.format = self.format
        info.subresourceRange.aspectMask = VK_IMAGE_ASPECT_COLOR_BIT
        info.subresourceRange.levelCount = 1
        info.subresourceRange.layerCount = 1
        check(self.device.vk.vkCreateImageView(self.device.handle, &info, NULL, &view),
              b"vkCreateImageView")
        count(IMAGE_VIEW, 1)
        self.view_handle = view
        return view

    cdef void destroy(self) noexcept:
        cdef VkImage handle = self.handle
        if handle == NULL:
            return
        self.handle = NULL
        self.block = None
        self.bound = False
        if self.view_handle != NULL:
            self.device.vk.vkDestroyImageView(self.device.handle, self.view_handle, NULL)
            self.view_handle = NULL
            self.device.uncount(IMAGE_VIEW)
        self.device.vk.vkDestroyImage(self.device.handle, handle, NULL)
        self.device.destroyed(IMAGE)

    def __dealloc__(self):
        self.destroy()


def buffer_requirements(Device device not None, uint64_t size, uint32_t usage, bint shared=False):
    """(size, alignment, memory type bits) that a buffer would need, without keeping one.

    Args:
        shared: it may be one of the compute queue alone, or one that the queue for copies uses as
            well: what suits both.
    """
    buffer = Buffer(device, size, usage)
    needs = buffer.requirements
    buffer.close()
    if shared and device.upload_family != device.queue_family:
        buffer = Buffer(device, size, usage, False, True)
        needs = either(needs, buffer.requirements)
        buffer.close()
    return needs


def either(needs, others):
    """What suits two requirements (size, alignment, memory type bits) at once.

    Alignments are powers of two.
    """
    return max(needs[0], others[0]), max(needs[1], others[1]), needs[2] & others[2]


def image_requirements(Device device not None, extent, int format, uint32_t usage):
    """(size, alignment, memory type bits) that a 3-D image would need, without keeping one."""
    image = Image(device, extent, format, usage)
    try:
        return image.requirements
    finally:
        image.close()
