# cython: cdivision=True, boundscheck=False, wraparound=False
"""Whether the way of every weight is sound: from where in a file it comes to which memory, when."""

from libc.stdint cimport int64_t

from vkrt.core.check cimport UPLOAD_SLOTS, Check, check_in_file, check_memory
from vkrt.core.check_commands cimport check_commands, check_kernels
from vkrt.core.error cimport VKRT_ERROR_FORMAT, VKRT_OK
from vkrt.core.flat cimport name_word, wrong
from vkrt.core.records cimport (
    BLOCK_KIND_POOL, BLOCK_KIND_WEIGHT, ROLE_WEIGHT, BlockRow, ExecutableRow, PrepackBatchRow,
    Records, ReloadPlanRow, ReloadRow, StagedReadRow, StreamedWeightRow, StridedCopyRow,
    UploadPieceRow, WeightPlanRow, WeightReadRow,
)
from vkrt.core.strided_copy cimport StridedCopy, make_strided_copy


cdef int check_weights(Check* c, const ExecutableRow* executable) noexcept nogil:
    """The weights of a method; those that are mapped have memory from here on."""
    cdef const WeightPlanRow* weights = &executable.weights
    cdef const WeightReadRow* read
    cdef int64_t k
    if weights.weights.count != weights.contents.count:
        return wrong(c, &weights.contents.count, "one content for each weight")
    for k in range(weights.weights.first, weights.weights.first + weights.weights.count):
        if check_weight(c, c.records.integer + k):
            return c.error.status
        c.listed[c.records.integer[k]] = True
    # Only those that are listed are made before their blocks are.
    for k in range(c.count):
        if c.placed[k] and c.storages[k].role == ROLE_WEIGHT \
                and not c.listed[k]:
            return wrong(c, &weights.weights.count, "every weight that has memory, and not that "
                         "of storage %lld alone", <long long>k)
    for k in range(weights.mapped.count):
        read = c.records.weight_read + weights.mapped.first + k
        if check_read(c, read):
            return c.error.status
        if c.placed[read.storage] or read.copy.is_there:
            return wrong(c, &read.storage, "a weight that has no other memory")
        c.placed[read.storage] = <char>(BLOCK_KIND_WEIGHT + 1)
    for k in range(weights.written.count):
        read = c.records.weight_read + weights.written.first + k
        if check_read(c, read) or check_memory(c, &read.storage):
            return c.error.status
    return (check_prepack(c, weights) or check_streamed(c, weights)
            or check_reloads(c, weights, executable.execution.submissions.count))


cdef int check_weight(Check* c, const int64_t* storage) noexcept nogil:
    if not 0 <= storage[0] < c.count or c.storages[storage[0]].role != ROLE_WEIGHT:
        return wrong(c, storage, "the number of a weight's storage")
    return VKRT_OK


cdef int check_read(Check* c, const WeightReadRow* read) noexcept nogil:
    """A weight that is read whole, and where a strided copy packs it has room for that."""
    cdef const int64_t* wrong_word = NULL
    cdef int64_t nbytes
    cdef StridedCopy copy
    if (check_weight(c, &read.storage)
            or check_in_file(c, &read.source, &read.offset, &read.nbytes)):
        return c.error.status
    nbytes = c.storages[read.storage].nbytes
    if c.storages[read.storage].extents.is_there:
        wrong_word = &read.storage
    elif read.tail < 0:
        wrong_word = &read.tail
    elif read.copy.is_there:
        if make_copy(c, &read.copy.value, &copy):
            return c.error.status
        if copy.source_bytes > <size_t>read.nbytes or copy.target_bytes > <size_t>nbytes:
            wrong_word = &read.nbytes
    elif read.nbytes > nbytes:
        wrong_word = &read.nbytes
    elif read.tail > nbytes - read.nbytes:
        wrong_word = &read.tail
    if wrong_word == NULL:
        return VKRT_OK
    return wrong(c, wrong_word, "a buffer of its bytes, not of %lld", <long long>nbytes)


cdef int make_copy(Check* c, const StridedCopyRow* row, StridedCopy* copy) noexcept nogil:
    """The strided copy of a weight."""
    if make_strided_copy(c.records.integer + row.params.first, <size_t>row.params.count,
                         row.itemsize, row.rows, copy, c.error) != VKRT_OK:
        c.error.status = VKRT_ERROR_FORMAT
        return name_word(c.records, &row.params.count, c.error, VKRT_ERROR_FORMAT)
    return VKRT_OK


cdef int check_prepack(Check* c, const WeightPlanRow* weights) noexcept nogil:
    """What passes the staging buffer once."""
    cdef const PrepackBatchRow* batch = c.records.prepack_batch + weights.prepack.batches.first
    cdef const BlockRow* blocks = c.records.block + weights.blocks.first
    cdef const int64_t* block
    cdef int64_t k, n
    if check_kernels(c, &weights.prepack.kernels):
        return c.error.status
    c.staging_bytes = weights.prepack.staging_bytes
    if (c.staging_bytes > 0) != (weights.prepack.batches.count > 0):
        return wrong(c, &weights.prepack.staging_bytes, "bytes of staging where something passes "
                     "it")
    # A batch writes blocks that are allocated for it, or were before: all of them, or those with a
    # weight that the host writes.
    for n in range(weights.blocks.count):
        if not weights.is_eager and not has_written(c.records, weights, blocks + n):
            place_all(c, blocks + n, 0)
    for k in range(weights.prepack.batches.count):
        block = c.records.integer + batch[k].blocks.first
        for n in range(batch[k].blocks.count):
            if not 0 <= block[n] < weights.blocks.count:
                return wrong(c, block + n, "the number of a block of weights")
            place_all(c, blocks + block[n], <char>(blocks[block[n]].kind + 1))
        for n in range(batch[k].reads.count):
            if check_staged(c, c.records.staged_read + batch[k].reads.first + n):
                return c.error.status
        if check_commands(c, &batch[k].commands, &weights.prepack.kernels):
            return c.error.status
    for n in range(weights.blocks.count):
        place_all(c, blocks + n, <char>(blocks[n].kind + 1))
    return VKRT_OK


cdef bint has_written(const Records* records, const WeightPlanRow* weights,
                      const BlockRow* block) noexcept nogil:
    cdef const WeightReadRow* written = records.weight_read + weights.written.first
    cdef int64_t p, k
    for p in range(block.places.first, block.places.first + block.places.count):
        for k in range(weights.written.count):
            if records.place[p].storage == written[k].storage:
                return True
    return False


cdef void place_all(Check* c, const BlockRow* block, char place) noexcept nogil:
    cdef int64_t p
    for p in range(block.places.first, block.places.first + block.places.count):
        c.placed[c.records.place[p].storage] = place


cdef int check_staged(Check* c, const StagedReadRow* read) noexcept nogil:
    cdef int64_t room = c.staging_bytes
    if check_in_file(c, &read.source, &read.offset, &read.nbytes):
        return c.error.status
    if read.staging_offset < 0 or read.zeros < 0 or read.staging_offset > room \
            or read.nbytes > room - read.staging_offset \
            or read.zeros > room - read.staging_offset - read.nbytes:
        return wrong(c, &read.staging_offset, "a part of %lld bytes of staging", <long long>room)
    return VKRT_OK


# Weights that come in every run

cdef int check_streamed(Check* c, const WeightPlanRow* weights) noexcept nogil:
    cdef const StreamedWeightRow* streamed = c.records.streamed_weight + weights.streamed.first
    cdef int64_t slot_bytes = weights.upload_bytes // UPLOAD_SLOTS, _, n
    if weights.upload_bytes < 0:
        return wrong(c, &weights.upload_bytes, "bytes")
    for _ in range(weights.streamed.count):
        if check_read(c, &streamed.read):
            return c.error.status
        if c.placed[streamed.read.storage] != BLOCK_KIND_POOL + 1:
            return wrong(c, &streamed.read.storage, "a weight with a place in the pool")
        if (streamed.pieces.count > 0) != (slot_bytes > 0):
            return wrong(c, &streamed.pieces.count, "pieces where there is staging")
        for n in range(streamed.pieces.count):
            if check_piece(c, &streamed.read,
                           c.records.upload_piece + streamed.pieces.first + n, slot_bytes):
                return c.error.status
        streamed += 1
    return VKRT_OK


cdef int check_piece(Check* c, const WeightReadRow* read, const UploadPieceRow* piece,
                     int64_t slot_bytes) noexcept nogil:
    """A part of a streamed weight, of which each row has as many bytes as any other."""
    cdef StridedCopy copy
    cdef int64_t nbytes = c.storages[read.storage].nbytes, row_bytes
    cdef bint fits = (min(piece.offset, piece.nbytes, piece.target, piece.first_row,
                          piece.rows) >= 0 and piece.target <= nbytes
                      and 0 < piece.target_bytes <= min(slot_bytes, nbytes - piece.target))
    if fits and read.copy.is_there:
        # Its copy has been made before, and is one.
        if make_copy(c, &read.copy.value, &copy) != VKRT_OK:
            return VKRT_ERROR_FORMAT
        row_bytes = <int64_t>(copy.target_bytes // copy.rows)
        fits = (piece.first_row <= <int64_t>copy.rows
                and piece.rows <= <int64_t>copy.rows - piece.first_row
                and row_bytes * piece.rows <= piece.target_bytes
                and row_bytes * piece.first_row <= piece.target)
    elif fits:
        fits = piece.nbytes <= piece.target_bytes
    if fits:
        return check_in_file(c, &read.source, &piece.offset, &piece.nbytes)
    return wrong(c, &piece.target, "a part of the weight of %lld bytes, %lld bytes at most",
                 <long long>nbytes, <long long>slot_bytes)


cdef int check_reloads(Check* c, const WeightPlanRow* weights, int64_t submissions) noexcept nogil:
    """Every streamed weight comes once in a run, and submissions wait for some of them."""
    cdef const ReloadPlanRow* plan = &weights.reloads.value
    cdef const int64_t* needed = c.records.integer + plan.needed.first
    cdef const ReloadRow* reload = c.records.reload + plan.reloads.first
    cdef int64_t count = weights.streamed.count, before = 0, k
    if not weights.reloads.is_there:
        if count:
            return wrong(c, &weights.streamed.count, "no streamed weight where nothing is reloaded")
        return VKRT_OK
    if count == 0 or submissions == 0 or plan.reloads.count != count \
            or plan.needed.count != submissions:
        return wrong(c, &plan.needed.count, "%lld reloads and %lld submissions", <long long>count,
                     <long long>submissions)
    for k in range(submissions):
        if not before <= needed[k] <= count or k == submissions - 1 and needed[k] != count:
            return wrong(c, needed + k, "numbers that grow to %lld", <long long>count)
        before = needed[k]
    for k in range(count):
        if not 0 <= reload[k].ahead <= 1 or not reload[k].ahead - 1 <= reload[k].after \
                < submissions:
            return wrong(c, &reload[k].after, "a moment of this run or the last one")
    return VKRT_OK
