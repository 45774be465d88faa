# cython: cdivision=True

from libc.stdlib cimport calloc, free
from libc.string cimport memset

from vkrt.core.block cimport flush_block, free_block
from vkrt.core.command cimport (
    begin_commands, close_command_buffer, close_command_pool, copy_buffer, end_commands,
    make_command_buffer, make_command_pool,
)
from vkrt.core.error cimport VKRT_ERROR_MEMORY, VKRT_OK, fail
from vkrt.core.formats cimport BUFFER_USAGE
from vkrt.core.memory_types cimport MEMORY_STAGING
from vkrt.core.pieces cimport make_job_of_rows
from vkrt.core.reader cimport read_job, start_ahead
from vkrt.core.records cimport StreamedWeightRow, UploadPieceRow
from vkrt.core.resource cimport SHARED, check_range, close_buffer, make_buffer_and_block
from vkrt.core.semaphore cimport close_timeline, finish_value, make_timeline, submit_in_order
from vkrt.core.weight_jobs cimport copy_of_weight, make_weight_job, plain_job


cdef int plan_upload(Uploader* uploader, Upload* item, const Records* records,
                     const StreamedWeightRow* row, Handles* handles,
                     Error* error) noexcept nogil:
    item.read = &row.read
    item.target = handles.items[row.read.storage].buffer
    if copy_of_weight(records, item.read, &item.room, &item.copy, error):
        return error.status
    if not uploader.host_signaled:
        return VKRT_OK
    return make_weight_job(records, item.read, item.target, item.copy, &item.job, error)


cdef int plan_piece(Uploader* uploader, Piece* piece, const Upload* item, const Records* records,
                    const UploadPieceRow* row, int slot, Error* error) noexcept nogil:
    cdef uint64_t start = slot * uploader.slot_bytes
    cdef Job plain = plain_job(records, item.read.source, row.offset, row.nbytes, &item.read.name,
                               <char*>uploader.block.mapped + start)
    piece.slot = slot
    piece.to, piece.nbytes = <uint64_t>row.target, <uint64_t>row.target_bytes
    return (check_range(item.target, piece.to, piece.nbytes, error)
            or check_range(&uploader.staging, start, piece.nbytes, error)
            or make_job_of_rows(&plain, <size_t>row.target_bytes, <size_t>row.target, item.copy,
                                row.first_row, row.rows, &piece.job, error))


cdef int open_staging(Uploader* uploader, Allocator* allocator, Error* error) noexcept nogil:
    cdef int i
    if (make_buffer_and_block(allocator, UPLOAD_SLOTS * uploader.slot_bytes, BUFFER_USAGE, SHARED,
                              MEMORY_STAGING, &uploader.staging, &uploader.block, error)
            or make_command_pool(allocator.device, True, &uploader.pool, error)):
        return error.status
    for i in range(UPLOAD_SLOTS):
        if make_command_buffer(&uploader.pool, &uploader.commands[i], error):
            return error.status
    return VKRT_OK


cdef int plan_pieces(Uploader* uploader, const Records* records, const StreamedWeightRow* rows,
                     Error* error) noexcept nogil:
    cdef int64_t number = 0, i, k
    for i in range(uploader.count):
        uploader.items[i].first = number
        uploader.items[i].count = rows[i].pieces.count
        number += rows[i].pieces.count
    uploader.pieces = <Piece*>calloc(<size_t>number + 1, sizeof(Piece))
    if uploader.pieces == NULL:
        return fail(error, VKRT_ERROR_MEMORY, b"streamed weights: the host is out of memory")
    number = 0
    for i in range(uploader.count):
        for k in range(rows[i].pieces.count):
            if plan_piece(uploader, &uploader.pieces[number], &uploader.items[i], records,
                          records.upload_piece + rows[i].pieces.first + k,
                          <int>(number % UPLOAD_SLOTS), error):
                return error.status
            number += 1
    return VKRT_OK


cdef int open_uploader(Allocator* allocator, Reader* reader, const WeightPlanRow* plan,
                       Handles* handles, Uploader* uploader, Error* error) noexcept nogil:
    cdef const Records* records = handles.records
    cdef const StreamedWeightRow* rows = records.streamed_weight + plan.streamed.first
    cdef int64_t i
    memset(uploader, 0, sizeof(uploader[0]))
    uploader.device, uploader.reader = handles.device, reader
    uploader.host_signaled = plan.upload_bytes == 0
    uploader.slot_bytes = <uint64_t>plan.upload_bytes // UPLOAD_SLOTS
    uploader.items = <Upload*>calloc(<size_t>plan.streamed.count + 1, sizeof(Upload))
    if uploader.items == NULL:
        return fail(error, VKRT_ERROR_MEMORY, b"streamed weights: the host is out of memory")
    uploader.count = plan.streamed.count
    for i in range(uploader.count):
        if plan_upload(uploader, &uploader.items[i], records, rows + i, handles, error):
            return error.status
    if make_timeline(handles.device, &uploader.arrivals, error):
        return error.status
    if uploader.host_signaled:
        return VKRT_OK
    return (open_staging(uploader, allocator, error) or plan_pieces(uploader, records, rows, error))


cdef int write_weight(Uploader* uploader, const Upload* item, Error* error) noexcept nogil:
    cdef Job failed
    if read_job(uploader.reader, &item.job, &failed, error):
        return error.status
    return flush_block(item.target.memory.block, item.target.memory.offset, item.target.size, error)


cdef int copy_piece(Uploader* uploader, const Upload* item, const Piece* piece,
                    Error* error) noexcept nogil:
    """Reads a piece into its slot, once that is free, and submits its copy."""
    cdef CommandBuffer* commands = &uploader.commands[piece.slot]
    cdef uint64_t start = piece.slot * uploader.slot_bytes
    cdef Job failed
    if (finish_value(&uploader.arrivals, uploader.free_at[piece.slot], error)
            or read_job(uploader.reader, &piece.job, &failed, error)
            or flush_block(&uploader.block, start, piece.nbytes, error)
            or begin_commands(commands, True, error)):
        return error.status
    copy_buffer(commands, uploader.staging.handle, start, item.target.handle, piece.to,
                piece.nbytes)
    if (end_commands(commands, error)
            or submit_in_order(commands, NULL, 0, &uploader.arrivals, uploader.submitted + 1, True,
                               NULL, error)):
        return error.status
    uploader.submitted += 1
    uploader.free_at[piece.slot] = uploader.submitted
    return VKRT_OK


cdef int upload_weight(Uploader* uploader, int64_t number, uint64_t* arrival,
                       Error* error) noexcept nogil:
    cdef const Upload* item = uploader.items + number
    cdef int64_t i
    if uploader.host_signaled:
        return write_weight(uploader, item, error)
    for i in range(item.first, item.first + item.count):
        if copy_piece(uploader, item, uploader.pieces + i, error):
            return error.status
    arrival[0] = uploader.submitted
    return VKRT_OK


cdef int prefetch_weight(Uploader* uploader, int64_t number, Error* error) noexcept nogil:
    cdef const WeightReadRow* read = uploader.items[number].read
    return start_ahead(uploader.reader, <size_t>read.source, <size_t>read.offset,
                       <size_t>read.nbytes, error)


cdef int finish_uploads(Uploader* uploader, Error* error) noexcept nogil:
    if uploader.host_signaled:
        return VKRT_OK  # nothing is under way between two calls of `upload_weight`
    return finish_value(&uploader.arrivals, uploader.submitted, error)


cdef int renew_arrivals(Uploader* uploader, Error* error) noexcept nogil:
    cdef TimelineSemaphore made
    if make_timeline(uploader.device, &made, error):
        return error.status
    close_timeline(&uploader.arrivals)
    uploader.arrivals = made
    return VKRT_OK


cdef void close_uploader(Uploader* uploader) noexcept nogil:
    cdef Error error  # of a device that is lost nothing is under way
    cdef int i
    if uploader.submitted > 0:
        finish_uploads(uploader, &error)
    for i in range(UPLOAD_SLOTS):
        close_command_buffer(&uploader.commands[i])
    close_command_pool(&uploader.pool)
    close_timeline(&uploader.arrivals)
    close_buffer(&uploader.staging)
    free_block(&uploader.block)
    free(uploader.items)
    free(uploader.pieces)
    memset(uploader, 0, sizeof(uploader[0]))
