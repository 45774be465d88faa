# cython: language_level=3

from libc.stdint cimport uint32_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from vkrt.core.block cimport Block, allocate_block, flush_block, free_block
from vkrt.core.command cimport begin_commands
from vkrt.core.descriptors cimport DescriptorPool, close_descriptor_pool
from vkrt.core.error cimport VKRT_ERROR_INTERNAL, VKRT_ERROR_MEMORY, VKRT_OK, fail
from vkrt.core.formats cimport BUFFER_USAGE
from vkrt.core.kernels cimport Kernel, get_kernels
from vkrt.core.memory_types cimport MEMORY_STAGING
from vkrt.core.once cimport Once, carry_out, close_once, open_once
from vkrt.core.pieces cimport Job
from vkrt.core.reader cimport read_job, start_ahead
from vkrt.core.records cimport PrepackBatchRow, Records, StagedReadRow
from vkrt.core.recording cimport make_sets, record_commands
from vkrt.core.resource cimport (
    COMPUTE_ONLY, Buffer, bind_buffer, destroy_buffer, make_buffer,
)


# What a prepack has while it runs
cdef struct Prepack:
    const PrepackPlanRow* plan
    const Records* records
    Handles* handles
    Reader* reader
    const Kernel** kernels
    Buffer staging
    Block block
    Once once


cdef int acquire(Prepack* prepack, Allocator* allocator, Kernels* kernels,
                 Error* error) noexcept nogil:
    cdef size_t number = <size_t>prepack.plan.kernels.count
    prepack.kernels = <const Kernel**>calloc(number + 1, sizeof(void*))
    if prepack.kernels == NULL:
        return fail(error, VKRT_ERROR_MEMORY, b"kernels of prepack: the host is out of memory")
    if (get_kernels(kernels, &prepack.plan.kernels, prepack.kernels, error)
            or make_buffer(&prepack.staging, allocator.device, prepack.plan.staging_bytes,
                           BUFFER_USAGE, COMPUTE_ONLY, error)
            or allocate_block(allocator, prepack.staging.memory.required.size,
                              prepack.staging.memory.required.alignment,
                              prepack.staging.memory.required.memoryTypeBits, MEMORY_STAGING,
                              &prepack.block, error)
            or bind_buffer(&prepack.staging, &prepack.block, 0, error)
            or open_once(&prepack.once, allocator.device, error)):
        return error.status
    prepack.handles.staging = &prepack.staging
    return VKRT_OK


cdef void release(Prepack* prepack) noexcept nogil:
    prepack.handles.staging = NULL
    close_once(&prepack.once)
    destroy_buffer(&prepack.staging)
    free_block(&prepack.block)
    free(prepack.kernels)


cdef int read_slices(Prepack* prepack, const PrepackBatchRow* batch, Error* error) noexcept nogil:
    """Reads the slices of a batch into staging, and asks for those behind them."""
    cdef char* base = <char*>prepack.block.mapped
    cdef const StagedReadRow* read
    cdef Job job, failed
    cdef int64_t i
    for i in range(batch.reads.count):
        read = prepack.records.staged_read + batch.reads.first + i
        if read.staging_offset + read.nbytes + read.zeros > prepack.plan.staging_bytes:
            return fail(error, VKRT_ERROR_INTERNAL, b"a slice reaches beyond the staging buffer")
        memset(&job, 0, sizeof(job))
        job.source, job.offset = <size_t>read.source, <size_t>read.offset
        job.nbytes, job.target = <size_t>read.nbytes, base + read.staging_offset
        job.name = prepack.records.texts + read.name.first
        if read_job(prepack.reader, &job, &failed, error):
            return error.status
        memset(job.target + job.nbytes, 0, <size_t>read.zeros)
    if batch.reads.count == 0:
        return VKRT_OK
    return start_ahead(prepack.reader, job.source, job.offset + job.nbytes,
                       prepack.reader.pieces.window, error)


cdef int run_batch(Prepack* prepack, const PrepackBatchRow* batch, Error* error) noexcept nogil:
    cdef DescriptorPool sets
    cdef uint32_t first = 0
    cdef int status = read_slices(prepack, batch, error)
    if status != VKRT_OK:
        return status
    status = make_sets(prepack.handles, &batch.commands, prepack.kernels, &sets, error)
    if status != VKRT_OK:
        return status
    if (begin_commands(&prepack.once.commands, True, error)
            or record_commands(&prepack.once.commands, prepack.handles, &batch.commands,
                               prepack.kernels, &sets, &first, error)
            or flush_block(&prepack.block, 0, prepack.plan.staging_bytes, error)
            or carry_out(&prepack.once, error)):
        status = error.status
    close_descriptor_pool(&sets)
    return status


cdef int run_batches(Prepack* prepack, AllocateBlock allocate, void* data,
                     Error* error) noexcept nogil:
    cdef const PrepackBatchRow* batch
    cdef int64_t i, k
    for i in range(prepack.plan.batches.count):
        batch = prepack.records.prepack_batch + prepack.plan.batches.first + i
        for k in range(batch.blocks.count):
            if allocate(data, prepack.records.integer[batch.blocks.first + k], error):
                return error.status
        if run_batch(prepack, batch, error):
            return error.status
    return VKRT_OK


cdef int run_prepack(const PrepackPlanRow* plan, Handles* handles, Allocator* allocator,
                     Kernels* kernels, Reader* reader, AllocateBlock allocate, void* data,
                     Error* error) noexcept nogil:
    cdef Prepack prepack
    cdef int status
    if plan.batches.count == 0:
        return VKRT_OK
    memset(&prepack, 0, sizeof(prepack))
    prepack.plan, prepack.records = plan, handles.records
    prepack.handles, prepack.reader = handles, reader
    status = acquire(&prepack, allocator, kernels, error)
    if status == VKRT_OK:
        status = run_batches(&prepack, allocate, data, error)
    release(&prepack)
    return status
