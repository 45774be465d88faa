# cython: cdivision=True, boundscheck=False, wraparound=False
"""Whether shared weights are sound, and what methods say of those that they read."""

from libc.stdint cimport int64_t
from libc.string cimport memcmp

from vkrt.core.check cimport check_method
from vkrt.core.error cimport VKRT_OK
from vkrt.core.flat cimport refused, wrong
from vkrt.core.records cimport BLOCK_KIND_WEIGHT, BlockRow, ExecutableRow, SharedUseRow, StorageRow


cdef int check_shared(const Records* records, const CompiledMethodRow* method, int64_t sources,
                      int64_t source_bytes, Error* error) noexcept nogil:
    cdef const ExecutableRow* executable = &method.largest.executable
    cdef const BlockRow* block = records.block + executable.weights.blocks.first
    cdef int64_t placed = executable.weights.mapped.count, _
    cdef Rows none
    none.first = none.count = 0
    if check_method(records, method, &none, sources, source_bytes, error):
        return error.status
    for _ in range(executable.weights.blocks.count):
        placed += block.places.count
        block += 1
    # No storage has two places.
    if placed != executable.execution.storages.count:
        return refused(records, &executable.execution.storages.count, error, "shared weights and "
                       "nothing else: %lld of them have memory", <long long>placed)
    return VKRT_OK


cdef int check_uses(Check* c, const CompiledMethodRow* method, const Rows* shared) noexcept nogil:
    cdef const SharedUseRow* use = c.records.shared_use + method.shared.first
    cdef const CompiledMethodRow* weights
    cdef const Rows* storages
    cdef int64_t _, k
    for _ in range(method.shared.count):
        if not 0 <= use.number < shared.count:
            return wrong(c, &use.number, "one of %lld shared weights", <long long>shared.count)
        weights = c.records.compiled_method + shared.first + use.number
        storages = &weights.largest.executable.execution.storages
        if use.storages.count != storages.count:
            return wrong(c, &use.storages.count, "%lld shared weights", <long long>storages.count)
        for k in range(storages.count):
            if check_use(c, c.records.integer + use.storages.first + k,
                         c.records.storage + storages.first + k):
                return c.error.status
        use += 1
    return VKRT_OK


cdef int check_use(Check* c, const int64_t* storage, const StorageRow* shared) noexcept nogil:
    """A storage of a method is a shared one, but for its number there."""
    cdef StorageRow there = shared[0]
    there.id = storage[0]
    if not 0 <= storage[0] < c.count or c.placed[storage[0]] \
            or memcmp(&there, &c.storages[storage[0]], sizeof(StorageRow)):
        return wrong(c, storage, "a storage that is shared weight %lld, of %lld bytes, and has no "
                     "other memory", <long long>shared.id, <long long>shared.nbytes)
    c.placed[storage[0]] = <char>(BLOCK_KIND_WEIGHT + 1)
    return VKRT_OK
