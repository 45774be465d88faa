from libc.stdint cimport uint32_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcmp, memcpy, memset

from vkrt.core.block cimport flush_block, invalidate_block
from vkrt.core.check cimport STAGING
from vkrt.core.error cimport VKRT_ERROR_FORMAT, VKRT_ERROR_MEMORY, VKRT_OK, fail
from vkrt.core.formats cimport BUFFER_USAGE, IMAGE_USAGE, texel_format
from vkrt.core.grown cimport grown
from vkrt.core.memory_types cimport hidden_types
from vkrt.core.records cimport DTYPE_BOOL, ROLE_WEIGHT
from vkrt.core.resource cimport (
    COMPUTE_ONLY, SHARED, bind_buffer, bind_image, buffer_requirements, close_buffer,
    close_buffer_view, close_image, image_requirements, make_buffer, make_buffer_view, make_image,
)
from vkrt.core.vulkan cimport VkExtent3D, VkFormat, VkMemoryRequirements

cdef enum:
    # Of float32; those of other dtypes are smaller.
    TEXEL_BYTES = 16
    # What makes a view of a multiple of 64 KiB another
    MARGIN = 256


cdef uint64_t view_bytes(uint64_t nbytes) noexcept nogil:
    """The size of a texel view of so many bytes, see `Policy.avoid_recompile_padding`."""
    return nbytes if nbytes >> 8 & 0xff else nbytes + MARGIN


cdef uint64_t buffer_bytes(const StorageRow* storage, bint padded) noexcept nogil:
    """The size of a storage's buffer. A padded one has room for such a view of any storage, so that
    a smaller storage never needs more than a larger one."""
    cdef uint64_t nbytes = storage.nbytes
    if not padded:
        return nbytes
    nbytes += MARGIN
    return nbytes if nbytes & (nbytes - 1) else nbytes + TEXEL_BYTES


cdef int open_handles(Device* device, const Records* records, const Rows* storages, bint padded,
                      Handles* handles, Error* error) noexcept nogil:
    memset(handles, 0, sizeof(handles[0]))
    handles.device = device
    handles.records = records
    handles.storages = records.storage + storages.first
    handles.count = storages.count
    handles.padded = padded
    handles.items = <Handle*>calloc(storages.count + 1, sizeof(Handle))
    handles.buffers = <Buffer*>calloc(storages.count + 1, sizeof(Buffer))
    handles.images = <Image*>calloc(storages.count + 1, sizeof(Image))
    if handles.items == NULL or handles.buffers == NULL or handles.images == NULL:
        close_handles(handles)
        return fail(error, VKRT_ERROR_MEMORY, b"the storages of a plan: the host is out of memory")
    return VKRT_OK


cdef void close_handles(Handles* handles) noexcept nogil:
    cdef int64_t i
    for i in range(handles.view_count):
        close_buffer_view(&handles.views[i].view)
    if handles.buffers != NULL and handles.images != NULL:
        for i in range(handles.count):
            close_buffer(&handles.buffers[i])
            close_image(&handles.images[i])
    free(handles.views)
    free(handles.items)
    free(handles.buffers)
    free(handles.images)
    memset(handles, 0, sizeof(handles[0]))


cdef VkExtent3D extent_of(const StorageRow* storage) noexcept nogil:
    cdef VkExtent3D extent
    extent.width = <uint32_t>storage.extents.value[0]
    extent.height = <uint32_t>storage.extents.value[1]
    extent.depth = <uint32_t>storage.extents.value[2]
    return extent


cdef int storage_requirements(Device* device, const StorageRow* storage, bint padded,
                              Requirements* found, Error* error) noexcept nogil:
    cdef VkMemoryRequirements needs
    cdef uint32_t hidden
    if storage.extents.is_there:
        if image_requirements(device, extent_of(storage), <VkFormat>texel_format(storage.dtype),
                              IMAGE_USAGE, &needs, error):
            return error.status
    else:
        # A weight may come to lie in the pool of those that are streamed.
        if buffer_requirements(device, buffer_bytes(storage, padded), BUFFER_USAGE,
                               storage.role == ROLE_WEIGHT, &needs, error):
            return error.status
        # Where memory is shared the host writes and reads every buffer, but no image: one that
        # cannot lie where the host sees it must not take a buffer along.
        hidden = hidden_types(&device.memory_properties) if device.unified else 0
        if needs.memoryTypeBits & ~hidden:
            needs.memoryTypeBits &= ~hidden
    found.nbytes, found.alignment = needs.size, needs.alignment
    found.type_bits = needs.memoryTypeBits
    return VKRT_OK


cdef bint has_handle(const Handles* handles, int64_t storage) noexcept nogil:
    return handles.items[storage].buffer != NULL or handles.items[storage].image != NULL


cdef int make_handle(Handles* handles, int64_t storage, Error* error) noexcept nogil:
    cdef const StorageRow* row = handles.storages + storage
    cdef Handle* item = handles.items + storage
    if row.extents.is_there:
        item.image = &handles.images[storage]
        return make_image(handles.device, extent_of(row), <VkFormat>texel_format(row.dtype),
                          IMAGE_USAGE, item.image, error)
    item.buffer = &handles.buffers[storage]
    item.offset = 0
    return make_buffer(handles.device, buffer_bytes(row, handles.padded), BUFFER_USAGE,
                       COMPUTE_ONLY, item.buffer, error)


cdef int allow_uploads(Handles* handles, int64_t storage, Error* error) noexcept nogil:
    cdef const StorageRow* row = handles.storages + storage
    cdef Buffer* buffer = handles.items[storage].buffer
    if handles.device.upload_family == handles.device.queue_family:
        return VKRT_OK
    close_buffer(buffer)
    return make_buffer(handles.device, buffer_bytes(row, handles.padded), BUFFER_USAGE, SHARED,
                       buffer, error)


cdef int make_handles(Handles* handles, const BlockRow* block, Error* error) noexcept nogil:
    cdef int64_t i
    for i in range(block.places.count):
        if make_handle(handles, handles.records.place[block.places.first + i].storage, error):
            return error.status
    return VKRT_OK


cdef int bind_handles(Handles* handles, const BlockRow* planned, Block* block,
                      Error* error) noexcept nogil:
    cdef int64_t i, storage
    cdef uint64_t offset
    for i in range(planned.places.first, planned.places.first + planned.places.count):
        storage = handles.records.place[i].storage
        offset = handles.records.place[i].offset
        if (bind_image(handles.items[storage].image, block, offset, error)
                if handles.items[storage].image != NULL
                else bind_buffer(handles.items[storage].buffer, block, offset, error)):
            return error.status
    return VKRT_OK


cdef void place_handle(Handles* handles, int64_t storage, Buffer* buffer,
                       uint64_t offset) noexcept nogil:
    handles.items[storage] = Handle(buffer, NULL, offset)


cdef void share_handle(Handles* handles, int64_t storage, const Handles* others,
                       int64_t there) noexcept nogil:
    handles.items[storage] = others.items[there]


cdef void share_handles(Handles* handles, const Handles* others) noexcept nogil:
    cdef int64_t i
    for i in range(min(handles.count, others.count)):
        # Words that mean nothing are zero, so that equal rows are equal bytes.
        if has_handle(others, i) and memcmp(handles.storages + i, others.storages + i,
                                            sizeof(StorageRow)) == 0:
            share_handle(handles, i, others, i)


cdef const Buffer* buffer_of(const Handles* handles, const RangeRow* part,
                             uint64_t* offset) noexcept nogil:
    offset[0] = <uint64_t>part.offset
    if part.storage == STAGING:
        return handles.staging
    offset[0] += handles.items[part.storage].offset
    return handles.items[part.storage].buffer


cdef bint has_room(const Handles* handles, const RangeRow* part, const Buffer* buffer,
                   uint64_t offset) noexcept nogil:
    """Whether nobody writes what a padded view has beyond a range: it is the margin of the
    storage's own buffer, or lies in an imported file, which has no block. No kernel reads it."""
    cdef const StorageRow* storage = handles.storages + part.storage
    if buffer.memory.block == NULL:
        return offset + view_bytes(part.nbytes) <= buffer.size
    return (part.offset + part.nbytes == storage.nbytes
            and buffer.size == buffer_bytes(storage, True))


cdef int get_texel_view(Handles* handles, const RangeRow* part, int64_t format,
                        VkBufferView* view, Error* error) noexcept nogil:
    cdef int64_t i
    cdef TexelView* made
    cdef const Buffer* buffer
    cdef uint64_t offset, nbytes = part.nbytes
    for i in range(handles.view_count):
        made = &handles.views[i]
        if made.format == format and memcmp(&made.range, part, sizeof(RangeRow)) == 0:
            view[0] = made.view.handle
            return VKRT_OK
    made = <TexelView*>grown(handles.views, <size_t>handles.view_count, sizeof(TexelView))
    if made == NULL:
        return fail(error, VKRT_ERROR_MEMORY, b"a texel view: the host is out of memory")
    handles.views = made
    buffer = buffer_of(handles, part, &offset)
    if handles.padded and has_room(handles, part, buffer, offset):
        nbytes = view_bytes(nbytes)
    made = &handles.views[handles.view_count]
    made.range, made.format = part[0], format
    if make_buffer_view(buffer, <VkFormat>format, offset, nbytes, &made.view, error):
        return error.status
    handles.view_count += 1
    view[0] = made.view.handle
    return VKRT_OK


cdef Block* block_of(const Handles* handles, const RangeRow* part, uint64_t* offset) noexcept nogil:
    """The block that a range is in, and where."""
    cdef const Buffer* buffer = handles.items[part.storage].buffer
    offset[0] = 0
    if buffer == NULL or buffer.memory.block == NULL:
        return NULL
    offset[0] = buffer.memory.offset + handles.items[part.storage].offset + <uint64_t>part.offset
    return buffer.memory.block


cdef char* host_address(const Handles* handles, const RangeRow* part) noexcept nogil:
    cdef uint64_t offset
    cdef Block* block = block_of(handles, part, &offset)
    if block == NULL or block.mapped == NULL:
        return NULL
    return <char*>block.mapped + offset


cdef Block* block_of_host(const Handles* handles, const RangeRow* part, uint64_t* offset,
                          Error* error) noexcept nogil:
    """The block that a range is in, and where; NULL with an error where the host does not see a
    range that a file says it reads or writes."""
    cdef Block* block = block_of(handles, part, offset)
    if block != NULL and block.mapped != NULL:
        return block
    fail(error, VKRT_ERROR_FORMAT, b"storage %d is read or written by the host, and lies in memory "
         b"that it does not see", <int>part.storage)
    return NULL


cdef int invalidate_range(const Handles* handles, const RangeRow* part,
                          Error* error) noexcept nogil:
    cdef uint64_t offset
    cdef Block* block = block_of_host(handles, part, &offset, error)
    return error.status if block == NULL else invalidate_block(block, offset, part.nbytes, error)


cdef int flush_range(const Handles* handles, const RangeRow* part, Error* error) noexcept nogil:
    cdef uint64_t offset
    cdef Block* block = block_of_host(handles, part, &offset, error)
    return error.status if block == NULL else flush_block(block, offset, part.nbytes, error)


cdef int copy_to_array(const Handles* handles, const HostArrayRow* array, const void* data,
                       size_t nbytes, Error* error) noexcept nogil:
    cdef const RangeRow* part = &array.range
    cdef uint64_t offset
    cdef Block* block = block_of_host(handles, part, &offset, error)
    cdef char* target
    cdef size_t i
    if block == NULL:
        return error.status
    if nbytes == 0:
        return VKRT_OK
    # Nothing that the device has written is alive in this memory between two runs.
    target = <char*>block.mapped + offset
    if array.dtype == DTYPE_BOOL:
        for i in range(nbytes):
            target[i] = (<const char*>data)[i] != 0
    else:
        memcpy(target, data, nbytes)
    memset(target + nbytes, 0, <size_t>part.nbytes - nbytes)
    return flush_block(block, offset, part.nbytes, error)


cdef int copy_from_range(const Handles* handles, const RangeRow* part, void* data, size_t nbytes,
                         Error* error) noexcept nogil:
    cdef uint64_t offset
    cdef Block* block = block_of_host(handles, part, &offset, error)
    if block == NULL:
        return error.status
    if nbytes == 0:
        return VKRT_OK
    if invalidate_block(block, offset, part.nbytes, error):
        return error.status
    memcpy(data, <char*>block.mapped + offset, nbytes)
    return VKRT_OK
