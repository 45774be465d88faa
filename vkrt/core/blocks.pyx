from libc.stdint cimport uint32_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from vkrt.core.block cimport allocate_block, free_block
from vkrt.core.error cimport VKRT_ERROR_INTERNAL, VKRT_ERROR_MEMORY, VKRT_OK, fail
from vkrt.core.handles cimport bind_handles
from vkrt.core.memory_types cimport MEMORY_DEVICE, MEMORY_READBACK
from vkrt.core.records cimport (
    BLOCK_KIND_HOST, BLOCK_KIND_SPILL, BlockRow,
)


cdef int plan_blocks(Allocator* allocator, Allocator* spilled, const Records* records,
                     const Rows* planned, const int64_t* type_bits, Blocks* blocks,
                     Error* error) noexcept nogil:
    memset(blocks, 0, sizeof(blocks[0]))
    blocks.allocator, blocks.spilled, blocks.records = allocator, spilled, records
    blocks.planned, blocks.type_bits = planned, type_bits
    blocks.items = <Block*>calloc(<size_t>planned.count + 1, sizeof(Block))
    if blocks.items == NULL:
        return fail(error, VKRT_ERROR_MEMORY, b"blocks of memory: the host is out of memory")
    return VKRT_OK


cdef int allocate_one(Blocks* blocks, int64_t number, Error* error) noexcept nogil:
    cdef int64_t row = blocks.planned.first + number
    cdef const BlockRow* planned = blocks.records.block + row
    cdef Purpose purpose = (MEMORY_READBACK if planned.kind in (BLOCK_KIND_HOST, BLOCK_KIND_SPILL)
                            else MEMORY_DEVICE)
    cdef int64_t bits = planned.type_bits if blocks.type_bits == NULL else blocks.type_bits[row]
    return allocate_block(blocks.spilled if planned.kind == BLOCK_KIND_SPILL else blocks.allocator,
                          planned.nbytes, planned.alignment, <uint32_t>bits,
                          purpose, &blocks.items[number], error)


cdef int allocate_planned(Blocks* blocks, Handles* handles, int64_t number,
                          Error* error) noexcept nogil:
    if blocks.items[number].handle != NULL:
        return VKRT_OK
    return (allocate_one(blocks, number, error)
            or bind_handles(handles, blocks.records.block + blocks.planned.first + number,
                            &blocks.items[number], error))


cdef int allocate_all(Blocks* blocks, Error* error) noexcept nogil:
    cdef int64_t i
    for i in range(blocks.planned.count):
        if blocks.items[i].handle == NULL and allocate_one(blocks, i, error):
            return error.status
    return VKRT_OK


cdef Block* find_block(Blocks* arena, const BlockRow* planned) noexcept nogil:
    cdef const BlockRow* rows = arena.records.block + arena.planned.first
    cdef int64_t i
    for i in range(arena.planned.count):
        if (rows[i].kind == planned.kind and rows[i].type_bits == planned.type_bits
                and rows[i].nbytes >= planned.nbytes):
            return &arena.items[i]
    return NULL


cdef int find_blocks(Blocks* arena, const Rows* planned, Block*** found,
                     Error* error) noexcept nogil:
    cdef int64_t i
    found[0] = <Block**>calloc(<size_t>planned.count + 1, sizeof(Block*))
    if found[0] == NULL:
        return fail(error, VKRT_ERROR_MEMORY, b"blocks of memory: the host is out of memory")
    for i in range(planned.count):
        found[0][i] = find_block(arena, arena.records.block + planned.first + i)
        if found[0][i] == NULL:
            return fail(error, VKRT_ERROR_INTERNAL, b"block %d: the arena has none for it", <int>i)
    return VKRT_OK


cdef void free_blocks(Blocks* blocks) noexcept nogil:
    cdef int64_t i
    if blocks.items != NULL:
        for i in range(blocks.planned.count):
            free_block(&blocks.items[i])
    free(blocks.items)
    memset(blocks, 0, sizeof(blocks[0]))
