"""Buffers and images, which are made without memory and bound to a place in a block once, and their
views. One of them is for one thread at a time."""

from libc.stdint cimport uint32_t, uint64_t

from vkrt.core.allocator cimport Allocator
from vkrt.core.block cimport Block
from vkrt.core.device cimport Device
from vkrt.core.error cimport Error
from vkrt.core.memory_types cimport Purpose
from vkrt.core.vulkan cimport (
    VkBuffer, VkBufferView, VkExtent3D, VkFormat, VkImage, VkImageView, VkMemoryRequirements,
)

# What a buffer or an image needs of its memory, and where it has it.
cdef struct MemoryBinding:
    VkMemoryRequirements required
    # Bound to a block or, without one, to memory of the host
    bint bound
    Block* block
    uint64_t offset

cdef struct Buffer:
    Device* device
    VkBuffer handle
    uint64_t size
    # Whose handle somebody else has made, bound and destroys; it retains no device.
    bint is_external
    MemoryBinding memory

cdef struct BufferView:
    Device* device
    VkBufferView handle

cdef struct Image:
    Device* device
    VkImage handle
    # The one view of the whole image, made on first use
    VkImageView view
    VkExtent3D extent
    VkFormat format
    MemoryBinding memory

cdef enum BufferUse:
    COMPUTE_ONLY = 0
    # Its memory will be the host's, see `vkrt.core.imported`.
    IMPORTED = 1
    # The queue for copies uses it as well.
    SHARED = 2

cdef extern nogil:
    # What failed needs no `close_..`, which may be called again.
    #   usage: VkBufferUsageFlags
    int make_buffer "vkrt_make_buffer"(Device* device, uint64_t size, uint32_t usage, BufferUse use,
                                       Buffer* buffer, Error* error)
    int adopt_buffer "vkrt_adopt_buffer"(Buffer* buffer, Device* device, VkBuffer handle,
                                         uint64_t size, Error* error)
    int bind_buffer "vkrt_bind_buffer"(Buffer* buffer, Block* block, uint64_t offset, Error* error)
    void close_buffer "vkrt_close_buffer"(Buffer* buffer)
    # A buffer with a block of its own, both all zeros before. Balance with `close_buffer` and then
    # `free_block`, also where it failed.
    int make_buffer_and_block "vkrt_make_buffer_and_block"(
        Allocator* allocator, uint64_t size, uint32_t usage, BufferUse use, Purpose purpose,
        Buffer* buffer, Block* block, Error* error)
    # Fails unless a part is in the buffer and not empty.
    int check_range "vkrt_check_range"(const Buffer* buffer, uint64_t offset, uint64_t range,
                                       Error* error)

    # A part of a bound buffer, seen as texels.
    #   offset: bytes, a multiple of `minTexelBufferOffsetAlignment`
    #   range: bytes, a multiple of the texel's size
    int make_buffer_view "vkrt_make_buffer_view"(const Buffer* buffer, VkFormat format,
                                                 uint64_t offset, uint64_t range, BufferView* view,
                                                 Error* error)
    void close_buffer_view "vkrt_close_buffer_view"(BufferView* view)

    # A 3-D image
    #   usage: VkImageUsageFlags
    int make_image "vkrt_make_image"(Device* device, VkExtent3D extent, VkFormat format,
                                     uint32_t usage, Image* image, Error* error)
    int bind_image "vkrt_bind_image"(Image* image, Block* block, uint64_t offset, Error* error)
    int get_image_view "vkrt_get_image_view"(Image* image, VkImageView* view, Error* error)
    void close_image "vkrt_close_image"(Image* image)

    # What a buffer or an image would need, without keeping one.
    #   shared: the buffer may be one of the compute queue alone, or one that the queue for copies
    #     uses as well: what suits both
    int buffer_requirements "vkrt_buffer_requirements"(Device* device, uint64_t size,
                                                       uint32_t usage, bint shared,
                                                       VkMemoryRequirements* needs, Error* error)
    int image_requirements "vkrt_image_requirements"(Device* device, VkExtent3D extent,
                                                     VkFormat format, uint32_t usage,
                                                     VkMemoryRequirements* needs, Error* error)
    # What suits two requirements at once. Alignments are powers of two.
    VkMemoryRequirements both_requirements "vkrt_both_requirements"(VkMemoryRequirements needs,
                                                                    VkMemoryRequirements others)
