"""The buffers and images behind the storages of an execution plan.

They are made unbound, and bound to a place in a block when the memory contract allows it.
"""

from libc.stdint cimport int64_t, uint64_t

from vkrt.core.block cimport Block
from vkrt.core.device cimport Device
from vkrt.core.error cimport Error
from vkrt.core.fit cimport Requirements
from vkrt.core.records cimport BlockRow, HostArrayRow, RangeRow, Records, Rows, StorageRow
from vkrt.core.resource cimport Buffer, BufferView, Image
from vkrt.core.vulkan cimport VkBufferView

# A storage: an image, or bytes of a buffer from an offset on
cdef struct Handle:
    Buffer* buffer
    Image* image
    uint64_t offset

# Bytes of a buffer, seen as texels
cdef struct TexelView:
    RangeRow range
    int64_t format
    BufferView view

cdef struct Handles:
    Device* device
    const Records* records
    const StorageRow* storages
    int64_t count
    # See `Policy.avoid_recompile_padding`
    bint padded
    # By storage: what it is, and what is made for it here (all zeros where it is somebody else's)
    Handle* items
    Buffer* buffers
    Image* images
    TexelView* views
    int64_t view_count
    # Of weights on their way, while there is one
    const Buffer* staging

cdef extern nogil:
    # What a storage will need on a device, before anything is made
    #   padded: see `Policy.avoid_recompile_padding`
    int storage_requirements "vkrt_storage_requirements"(
        Device* device, const StorageRow* storage, bint padded, Requirements* found, Error* error)
    # Of the storages of a plan; nothing is made yet. What failed needs no `close_handles`.
    int open_handles "vkrt_open_handles"(Device* device, const Records* records,
                                         const Rows* storages, bint padded, Handles* handles,
                                         Error* error)
    # Destroys what was made; the memory blocks are their owner's. May be called again.
    void close_handles "vkrt_close_handles"(Handles* handles)
    # An unbound buffer or image for a storage
    int make_handle "vkrt_make_handle"(Handles* handles, int64_t storage, Error* error)
    # The same for all storages of a planned block
    int make_handles "vkrt_make_handles"(Handles* handles, const BlockRow* block, Error* error)
    # Gives the storages of a planned block their places in the allocated one.
    int bind_handles "vkrt_bind_handles"(Handles* handles, const BlockRow* planned, Block* block,
                                         Error* error)
    # Makes a buffer, unbound yet, one that the queue for copies may write.
    int allow_uploads "vkrt_allow_uploads"(Handles* handles, int64_t storage, Error* error)
    # Whether a storage has its buffer or image
    bint has_handle "vkrt_has_handle"(const Handles* handles, int64_t storage)
    # Makes a storage a part of a bound buffer that is somebody else's.
    void place_handle "vkrt_place_handle"(Handles* handles, int64_t storage, Buffer* buffer,
                                          uint64_t offset)
    # Makes a storage the one of others that has the same bytes.
    void share_handle "vkrt_share_handle"(Handles* handles, int64_t storage, const Handles* others,
                                          int64_t there)
    # Takes the storages that others have, if this plan has the same under their number.
    void share_handles "vkrt_share_handles"(Handles* handles, const Handles* others)

    # The buffer that a range is in, and where. It is a part of its storage: files are checked.
    const Buffer* buffer_of "vkrt_buffer_of"(const Handles* handles, const RangeRow* part,
                                             uint64_t* offset)
    # A view of a range as texels of a VkFormat, made once
    int get_texel_view "vkrt_get_texel_view"(Handles* handles, const RangeRow* part, int64_t format,
                                             VkBufferView* view, Error* error)

    # Where the host reads and writes a range, or NULL where it does not see that memory.
    char* host_address "vkrt_host_address"(const Handles* handles, const RangeRow* part)
    # Where memory is not coherent both carry whole atoms of it, and what else is in the first and
    # the last one has to come to no harm. So the host invalidates all that it will read, and write
    # beside what the device wrote, then writes, then flushes all it wrote; and it does so while the
    # device leaves that memory in peace. Then nothing unflushed is dropped, and nothing stale is
    # flushed.
    int invalidate_range "vkrt_invalidate_range"(const Handles* handles, const RangeRow* part,
                                                 Error* error)
    int flush_range "vkrt_flush_range"(const Handles* handles, const RangeRow* part, Error* error)
    # Between the range of an array and bytes of the host's, of which there are no more than the
    # range has. What is behind them in the range becomes zero: kernels take padding to be zero.
    # Bools become 0 or 1: kernels compute with what they hold.
    int copy_to_array "vkrt_copy_to_array"(const Handles* handles, const HostArrayRow* array,
                                           const void* data, size_t nbytes, Error* error)
    int copy_from_range "vkrt_copy_from_range"(const Handles* handles, const RangeRow* part,
                                               void* data, size_t nbytes, Error* error)
