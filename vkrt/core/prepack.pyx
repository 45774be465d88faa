from libc.stdint cimport uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from vkrt.core.block cimport Block, flush_block, free_block
from vkrt.core.command cimport begin_commands
from vkrt.core.descriptors cimport DescriptorPool, close_descriptor_pool
from vkrt.core.error cimport VKRT_ERROR_INTERNAL, VKRT_ERROR_MEMORY, VKRT_OK, fail
from vkrt.core.formats cimport BUFFER_USAGE
from vkrt.core.loading cimport count_bytes, read_jobs
from vkrt.core.memory_types cimport MEMORY_STAGING
from vkrt.core.once cimport Once, carry_out, close_once, open_once
from vkrt.core.pieces cimport Job
from vkrt.core.reader cimport start_ahead
from vkrt.core.records cimport PrepackBatchRow, StagedReadRow
from vkrt.core.recording cimport make_sets, record_commands
from vkrt.core.resource cimport COMPUTE_ONLY, Buffer, close_buffer, make_buffer_and_block
from vkrt.core.weight_jobs cimport plain_job


# What a prepack has while it runs
cdef struct Prepack:
    const PrepackPlanRow* plan
    const Records* records
    Handles* handles
    Loading* loading
    const Kernel* kernels
    Buffer staging
    Block block
    Once once


cdef int acquire(Prepack* prepack, Allocator* allocator, Error* error) noexcept nogil:
    if (make_buffer_and_block(allocator, prepack.plan.staging_bytes, BUFFER_USAGE, COMPUTE_ONLY,
                              MEMORY_STAGING, &prepack.staging, &prepack.block, error)
            or open_once(allocator.device, &prepack.once, error)):
        return error.status
    prepack.handles.staging = &prepack.staging
    return VKRT_OK


cdef void release(Prepack* prepack) noexcept nogil:
    prepack.handles.staging = NULL
    close_once(&prepack.once)
    close_buffer(&prepack.staging)
    free_block(&prepack.block)


cdef int read_slices(Prepack* prepack, const PrepackBatchRow* batch, Job* jobs,
                     Error* error) noexcept nogil:
    """Reads the slices of a batch into staging, and asks for those behind them."""
    cdef char* base = <char*>prepack.block.mapped
    cdef const StagedReadRow* reads = prepack.records.staged_read + batch.reads.first
    cdef const StagedReadRow* read
    cdef int64_t i
    for i in range(batch.reads.count):
        read = &reads[i]
        if read.staging_offset + read.nbytes + read.zeros > prepack.plan.staging_bytes:
            return fail(error, VKRT_ERROR_INTERNAL, b"a slice reaches beyond the staging buffer")
        jobs[i] = plain_job(prepack.records, read.source, read.offset, read.nbytes, &read.name,
                            base + read.staging_offset)
    if read_jobs(prepack.loading, jobs, <size_t>batch.reads.count, error):
        return error.status
    for i in range(batch.reads.count):
        memset(jobs[i].target + jobs[i].nbytes, 0, <size_t>reads[i].zeros)
    if batch.reads.count == 0:
        return VKRT_OK
    read = &reads[batch.reads.count - 1]
    return start_ahead(prepack.loading.reader, <size_t>read.source,
                       <size_t>(read.offset + read.nbytes),
                       prepack.loading.reader.pieces.window, error)


cdef int read_batch(Prepack* prepack, const PrepackBatchRow* batch, Error* error) noexcept nogil:
    cdef Job* jobs = <Job*>calloc(<size_t>batch.reads.count + 1, sizeof(Job))
    cdef int status
    if jobs == NULL:
        return fail(error, VKRT_ERROR_MEMORY, b"slices of weights: the host is out of memory")
    status = read_slices(prepack, batch, jobs, error)
    free(jobs)
    return status


cdef uint64_t bytes_of(const Prepack* prepack, const PrepackBatchRow* batch) noexcept nogil:
    """That it takes from the file."""
    cdef uint64_t nbytes = 0
    cdef int64_t i
    for i in range(batch.reads.first, batch.reads.first + batch.reads.count):
        nbytes += <uint64_t>prepack.records.staged_read[i].nbytes
    return nbytes


cdef int run_batch(Prepack* prepack, const PrepackBatchRow* batch, Error* error) noexcept nogil:
    cdef DescriptorPool sets
    cdef uint32_t first = 0
    cdef int status
    if (read_batch(prepack, batch, error)
            or make_sets(prepack.handles, prepack.records, &batch.commands, prepack.kernels, &sets,
                         error)):
        return error.status
    status = (begin_commands(&prepack.once.commands, True, error)
              or record_commands(&prepack.once.commands, prepack.handles, prepack.records,
                                 &batch.commands, prepack.kernels, &sets, &first, NULL, error)
              or flush_block(&prepack.block, 0, prepack.plan.staging_bytes, error)
              or carry_out(&prepack.once, error))
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
        if (run_batch(prepack, batch, error)
                or count_bytes(prepack.loading, bytes_of(prepack, batch), error)):
            return error.status
    return VKRT_OK


cdef int run_prepack(const Records* records, const PrepackPlanRow* plan, Handles* handles,
                     Allocator* allocator, const Kernel* kernels, Loading* loading,
                     AllocateBlock allocate, void* data, Error* error) noexcept nogil:
    cdef Prepack prepack
    cdef int status
    if plan.batches.count == 0:
        return VKRT_OK
    memset(&prepack, 0, sizeof(prepack))
    prepack.plan, prepack.records, prepack.handles = plan, records, handles
    prepack.kernels, prepack.loading = kernels, loading
    status = acquire(&prepack, allocator, error) or run_batches(&prepack, allocate, data, error)
    release(&prepack)
    return status
