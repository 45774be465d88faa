# cython: language_level=3
"""The buffers and images behind the storages of an execution plan.

They are made unbound, and bound to a place in a block when the memory contract allows it.
"""

from libc.stdint cimport int64_t, uint64_t

from vkrt.core.block cimport Block
from vkrt.core.device cimport Device
from vkrt.core.error cimport Error
from vkrt.core.fit cimport Requirements
from vkrt.core.records cimport BlockRow, RangeRow, Records, Rows, StorageRow
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


# What a storage will need on a device, before anything is made
#   padded: see `Policy.avoid_recompile_padding`
cdef extern int storage_requirements "vkrt_storage_requirements"(
    Device* device, const StorageRow* storage, bint padded, Requirements* found,
    Error* error) noexcept nogil
# Of the storages of a plan; nothing is made yet. What failed needs no `close_handles`.
cdef extern int open_handles "vkrt_open_handles"(
    Device* device, const Records* records, const Rows* storages, bint padded, Handles* handles,
    Error* error) noexcept nogil
# Destroys what was made; the memory blocks are their owner's. May be called again.
cdef extern void close_handles "vkrt_close_handles"(Handles* handles) noexcept nogil
# An unbound buffer or image for a storage
cdef extern int make_handle "vkrt_make_handle"(
    Handles* handles, int64_t storage, Error* error) noexcept nogil
# The same for all storages of a planned block
cdef extern int make_handles "vkrt_make_handles"(
    Handles* handles, const BlockRow* block, Error* error) noexcept nogil
# Gives the storages of a planned block their places in the allocated one.
cdef extern int bind_handles "vkrt_bind_handles"(
    Handles* handles, const BlockRow* planned, Block* block, Error* error) noexcept nogil
# Makes a buffer, unbound yet, one that the queue for copies may write.
cdef extern int allow_uploads "vkrt_allow_uploads"(
    Handles* handles, int64_t storage, Error* error) noexcept nogil
# Whether a storage has its buffer or image
cdef extern bint has_handle "vkrt_has_handle"(
    const Handles* handles, int64_t storage) noexcept nogil
# Makes a storage a part of a bound buffer that is somebody else's.
cdef extern void place_handle "vkrt_place_handle"(
    Handles* handles, int64_t storage, Buffer* buffer, uint64_t offset) noexcept nogil
# Makes a storage the one of others that has the same bytes.
cdef extern void share_handle "vkrt_share_handle"(
    Handles* handles, int64_t storage, const Handles* others, int64_t there) noexcept nogil
# Takes the storages that others have, if this plan has the same under their number.
cdef extern void share_handles "vkrt_share_handles"(
    Handles* handles, const Handles* others) noexcept nogil

# The buffer that a range is in, and where. It is a part of its storage: files are checked.
cdef extern const Buffer* buffer_of "vkrt_buffer_of"(
    const Handles* handles, const RangeRow* part, uint64_t* offset) noexcept nogil
# A view of a range as texels of a VkFormat, made once
cdef extern int get_texel_view "vkrt_get_texel_view"(
    Handles* handles, const RangeRow* part, int64_t format, VkBufferView* view,
    Error* error) noexcept nogil

# Where the host reads and writes a range, or NULL where it does not see that memory.
cdef extern char* host_address "vkrt_host_address"(
    const Handles* handles, const RangeRow* part) noexcept nogil
# Where memory is not coherent both carry whole atoms of it, and what else is in the first and the
# last one has to come to no harm. So the host invalidates all that it will read, and write beside
# what the device wrote, then writes, then flushes all it wrote; and it does so while the device
# leaves that memory in peace. Then nothing unflushed is dropped, and nothing stale is flushed.
cdef extern int invalidate_range "vkrt_invalidate_range"(
    const Handles* handles, const RangeRow* part, Error* error) noexcept nogil
cdef extern int flush_range "vkrt_flush_range"(
    const Handles* handles, const RangeRow* part, Error* error) noexcept nogil
# Between a range and bytes of the host's, of which there are no more than the range has. What is
# behind them in the range becomes zero: kernels take padding to be zero.
cdef extern int copy_to_range "vkrt_copy_to_range"(
    const Handles* handles, const RangeRow* part, const void* data, size_t nbytes,
    Error* error) noexcept nogil
cdef extern int copy_from_range "vkrt_copy_from_range"(
    const Handles* handles, const RangeRow* part, void* data, size_t nbytes,
    Error* error) noexcept nogil
