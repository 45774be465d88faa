# cython: cdivision=True, boundscheck=False, wraparound=False
"""Whether a method of a file is sound: its storages, their places in memory, and its states.

What is checked, here and in `check_weights` and `check_commands`, is what a runtime goes by without
looking again: numbers of storages, blocks and kernels, and that nothing lies beyond what it is part
of. What kernels compute with (push constants, workgroups) is not: that is what the file says.
"""

from libc.stdint cimport int64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcmp, memcpy, memset

from vkrt.core.check cimport MOST_BYTES, STAGING, Check
from vkrt.core.check_commands cimport check_execution
from vkrt.core.check_shared cimport check_uses
from vkrt.core.check_weights cimport check_weights
from vkrt.core.checked cimport multiply_overflows
from vkrt.core.dtypes cimport is_device_dtype, itemsize_of
from vkrt.core.error cimport VKRT_ERROR_MEMORY, VKRT_OK, Error, fail
from vkrt.core.flat cimport equal_texts, wrong
from vkrt.core.records cimport (
    BLOCK_KIND_ACTIVATION, BLOCK_KIND_HOST, BLOCK_KIND_POOL, BLOCK_KIND_SPILL, BLOCK_KIND_STATE,
    BLOCK_KIND_WEIGHT, ROLE_SPILL, ROLE_STATE, ROLE_WEIGHT, BlockRow, CompiledMethodRow,
    CompiledShapeRow, ExecutableRow, ExecutionPlanRow, ModuleRow, PlaceRow, RangeRow, Records, Rows,
    StateTensorRow, StorageRow, Text,
)

cdef int check_method(const Records* records, const CompiledMethodRow* method,
                      const Rows* shared, int64_t sources, int64_t source_bytes,
                      Error* error) noexcept nogil:
    cdef Check c
    cdef int64_t most = method.largest.executable.execution.storages.count, k
    cdef const CompiledShapeRow* shapes = records.compiled_shape + method.others.first
    cdef int status
    for k in range(method.others.count):
        most = max(most, shapes[k].execution.storages.count)
    memset(&c, 0, sizeof(c))
    c.records, c.error, c.sources, c.source_bytes = records, error, sources, source_bytes
    # Where storages lie, at the shape at hand and at every one, and which of them are weights
    c.placed = <char*>calloc(3, <size_t>most + 1)
    if c.placed == NULL:
        return fail(error, VKRT_ERROR_MEMORY, "no memory for a check of %lld storages",
                    <long long>most)
    c.listed = c.placed + 2 * most
    status = check_shapes(&c, method, shared, c.placed + most, <size_t>most)
    free(c.placed)
    return status


cdef int check_shapes(Check* c, const CompiledMethodRow* method, const Rows* shared, char* stays,
                      size_t most) noexcept nogil:
    cdef const ExecutableRow* executable = &method.largest.executable
    cdef const CompiledShapeRow* shapes = c.records.compiled_shape + method.others.first
    cdef int64_t count = executable.execution.storages.count, k
    cdef const StorageRow* storages
    if (check_storages(c, &executable.execution.storages)
            or check_places(c, &executable.weights.blocks,
                            1 << BLOCK_KIND_WEIGHT | 1 << BLOCK_KIND_POOL)
            or check_places(c, &executable.states.blocks, 1 << BLOCK_KIND_STATE)
            or check_weights(c, executable) or check_states(c, executable)
            or check_uses(c, method, shared)):
        return c.error.status
    c.staging_bytes = 0
    storages = c.storages
    memcpy(stays, c.placed, most)
    if check_shape(c, executable, &executable.execution):
        return c.error.status
    for k in range(method.others.count):
        if (check_storages(c, &shapes[k].execution.storages)
                or check_same(c, storages, count, stays)):
            return c.error.status
        memcpy(c.placed, stays, most)
        if check_shape(c, executable, &shapes[k].execution):
            return c.error.status
    return VKRT_OK


cdef int check_shape(Check* c, const ExecutableRow* executable,
                     const ExecutionPlanRow* execution) noexcept nogil:
    """The commands at one shape, and the memory of its activations."""
    if check_places(c, &execution.blocks, 1 << BLOCK_KIND_ACTIVATION | 1 << BLOCK_KIND_HOST
                    | 1 << BLOCK_KIND_SPILL):
        return c.error.status
    if executable.weights.reloads.is_there \
            and executable.weights.reloads.value.needed.count != execution.submissions.count:
        return wrong(c, &executable.weights.reloads.value.needed.count, "a number for each of "
                     "%lld submissions", <long long>execution.submissions.count)
    return check_execution(c, execution)


# Storages and their places

cdef int check_storages(Check* c, const Rows* storages) noexcept nogil:
    """The storages at one shape, which become those at hand."""
    cdef const StorageRow* storage = c.records.storage + storages.first
    cdef int64_t k, side
    c.storages, c.count = storage, storages.count
    for k in range(storages.count):
        if storage.id != k:
            return wrong(c, &storage.id, "a storage of this number, %lld", <long long>k)
        if not is_device_dtype(storage.dtype):
            return wrong(c, &storage.dtype, "a dtype that kernels read")
        if storage.nbytes <= 0:
            return wrong(c, &storage.nbytes, "bytes of a storage")
        if storage.extents.is_there:
            for side in range(3):
                if not 0 < storage.extents.value[side] < <int64_t>1 << 32:
                    return wrong(c, &storage.extents.value[side], "an image of texels")
        storage += 1
    return VKRT_OK


cdef int check_same(Check* c, const StorageRow* storages, int64_t count,
                    const char* stays) noexcept nogil:
    """Weights and states are the same storages at every shape."""
    cdef int64_t k
    for k in range(count):
        if stays[k] and (k >= c.count or memcmp(&storages[k], &c.storages[k], sizeof(StorageRow))):
            return wrong(c, &storages[k].id, "the storage of a weight or state at every shape")
    return VKRT_OK


cdef int kinds_of(int64_t role) noexcept nogil:
    """Kinds of blocks, one bit each, in which a storage of this role lies."""
    if role == ROLE_WEIGHT:
        return 1 << BLOCK_KIND_WEIGHT | 1 << BLOCK_KIND_POOL
    if role == ROLE_STATE:
        return 1 << BLOCK_KIND_STATE
    if role == ROLE_SPILL:
        return 1 << BLOCK_KIND_SPILL
    return 1 << BLOCK_KIND_ACTIVATION | 1 << BLOCK_KIND_HOST


cdef int check_places(Check* c, const Rows* blocks, int kinds) noexcept nogil:
    """Each storage lies in one block of a kind that it may lie in, and these blocks are of some
    kinds, one bit each."""
    cdef const BlockRow* block = c.records.block + blocks.first
    cdef const PlaceRow* place
    cdef int64_t _, p
    for _ in range(blocks.count):
        if not kinds >> block.kind & 1:
            return wrong(c, &block.kind, "another kind of block in this place")
        if block.nbytes <= 0:
            return wrong(c, &block.nbytes, "bytes of a block")
        if block.alignment <= 0 or block.alignment & block.alignment - 1:
            return wrong(c, &block.alignment, "a power of two as alignment of a block")
        if not 0 < block.type_bits < <int64_t>1 << 32:
            return wrong(c, &block.type_bits, "memory types of a block")
        place = c.records.place + block.places.first
        for p in range(block.places.count):
            if check_place(c, place + p, block):
                return c.error.status
        block += 1
    return VKRT_OK


cdef int check_place(Check* c, const PlaceRow* place, const BlockRow* block) noexcept nogil:
    cdef const StorageRow* storage
    if not 0 <= place.storage < c.count or c.placed[place.storage]:
        return wrong(c, &place.storage, "the place of a storage that has no other")
    storage = c.storages + place.storage
    if not 0 <= place.offset <= block.nbytes:
        return wrong(c, &place.offset, "a place of a block of %lld bytes", <long long>block.nbytes)
    if not (1 if storage.extents.is_there else storage.nbytes) <= place.nbytes \
            <= block.nbytes - place.offset:
        return wrong(c, &place.nbytes, "a place of %lld bytes at %lld of a block of %lld",
                     <long long>storage.nbytes, <long long>place.offset, <long long>block.nbytes)
    if not kinds_of(storage.role) >> block.kind & 1:
        return wrong(c, &place.storage, "a storage that may lie in a block of this kind")
    c.placed[place.storage] = <char>(block.kind + 1)
    return VKRT_OK


cdef int check_memory(Check* c, const int64_t* storage) noexcept nogil:
    """A storage lies in memory; `storage` is its number."""
    cdef int kind
    if not 0 <= storage[0] < c.count:
        return wrong(c, storage, "the number of a storage, of which there are %lld",
                     <long long>c.count)
    kind = c.placed[storage[0]] - 1
    if kind < 0 or not kinds_of(c.storages[storage[0]].role) >> kind & 1:
        return wrong(c, storage, "a storage that has memory")
    return VKRT_OK


cdef bint is_image(const Check* c, int64_t storage) noexcept nogil:
    return storage != STAGING and c.storages[storage].extents.is_there == 1


cdef int check_range(Check* c, const RangeRow* part) noexcept nogil:
    """Bytes of a storage that has memory, or of the staging buffer."""
    cdef int64_t nbytes = c.staging_bytes
    if part.storage != STAGING or not nbytes:
        if check_memory(c, &part.storage):
            return c.error.status
        nbytes = c.storages[part.storage].nbytes
    if not 0 <= part.offset <= nbytes:
        return wrong(c, &part.offset, "a part of %lld bytes", <long long>nbytes)
    if not 0 <= part.nbytes <= nbytes - part.offset:
        return wrong(c, &part.nbytes, "a part of %lld bytes, from %lld on", <long long>nbytes,
                     <long long>part.offset)
    return VKRT_OK


# States, and what others need

cdef int check_states(Check* c, const ExecutableRow* executable) noexcept nogil:
    cdef const StateTensorRow* state = c.records.state_tensor + executable.states.tensors.first
    cdef int64_t none = 0, _, elements, nbytes
    for _ in range(executable.states.tensors.count):
        if check_range(c, &state.range):
            return c.error.status
        if c.storages[state.range.storage].role != ROLE_STATE:
            return wrong(c, &state.range.storage, "memory of states")
        elements = product_of(c.records, &state.sizes)
        if elements < 0 or multiply_overflows(elements, itemsize_of(state.dtype), &nbytes) \
                or nbytes != state.nbytes or nbytes > state.range.nbytes:
            return wrong(c, &state.nbytes, "as many as the tensor's elements have, %lld at most",
                         <long long>state.range.nbytes)
        if not 0 <= state.places <= elements:
            return wrong(c, &state.places, "0 to %lld, as many as the tensor has elements",
                         <long long>elements)
        if check_in_file(c, &state.source, &state.offset,
                         <const int64_t*>&none if state.is_zero else &state.nbytes):
            return c.error.status
        state += 1
    return VKRT_OK


cdef int check_in_file(Check* c, const int64_t* source, const int64_t* offset,
                       const int64_t* nbytes) noexcept nogil:
    """A part of a file."""
    cdef int64_t end = c.source_bytes if c.source_bytes else MOST_BYTES
    if not 0 <= source[0] < c.sources:
        return wrong(c, source, "a part of one of %lld files", <long long>c.sources)
    if not 0 <= offset[0] <= end:
        return wrong(c, offset, "a part of a file of %lld bytes", <long long>end)
    if not 0 <= nbytes[0] <= end - offset[0]:
        return wrong(c, nbytes, "a part of a file of %lld bytes, from %lld on", <long long>end,
                     <long long>offset[0])
    return VKRT_OK


cdef int64_t product_of(const Records* records, const Rows* sizes) noexcept nogil:
    """How many elements an array of these sizes has; -1 where that is no number."""
    cdef const int64_t* size = records.integer + sizes.first
    cdef int64_t product = 1, k
    cdef bint is_empty = False
    for k in range(sizes.count):
        if size[k] < 0:
            return -1
        is_empty = is_empty or size[k] == 0
    for k in range(sizes.count):
        if not is_empty and multiply_overflows(product, size[k], &product):
            return -1
    return 0 if is_empty else product


cdef const ModuleRow* find_module(const Records* records, const Text* name) noexcept nogil:
    """The module of a shader; NULL where the file does not have it."""
    cdef const Rows* modules = &records.compiled[0].modules
    cdef int64_t k
    for k in range(modules.first, modules.first + modules.count):
        if equal_texts(records, &records.module[k].name, name):
            return records.module + k
    return NULL
