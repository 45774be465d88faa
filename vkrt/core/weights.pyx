# cython: cdivision=True

from libc.stdint cimport INT64_MAX, INT64_MIN, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from vkrt.core.block cimport flush_block
from vkrt.core.blocks cimport allocate_planned, free_blocks, plan_blocks
from vkrt.core.check_weights cimport has_written
from vkrt.core.error cimport VKRT_ERROR_MEMORY, VKRT_OK, fail
from vkrt.core.formats cimport BUFFER_USAGE
from vkrt.core.handles cimport allow_uploads, has_handle, make_handle, place_handle
from vkrt.core.imported cimport end_import, import_host
from vkrt.core.loading cimport count_bytes, read_jobs
from vkrt.core.mapping cimport extend_window
from vkrt.core.pieces cimport Job
from vkrt.core.prepack cimport run_prepack
from vkrt.core.records cimport BlockRow, WeightReadRow
from vkrt.core.resource cimport Buffer
from vkrt.core.strided_copy cimport StridedCopy
from vkrt.core.weight_jobs cimport copy_of_weight, make_weight_job


cdef int open_weights(Allocator* allocator, const Records* records, const WeightPlanRow* plan,
                      const File* file, Handles* handles, const int64_t* type_bits,
                      Weights* weights, Error* error) noexcept nogil:
    cdef int64_t i
    memset(weights, 0, sizeof(weights[0]))
    weights.records, weights.plan, weights.allocator = records, plan, allocator
    weights.file, weights.handles = file, handles
    if plan_blocks(allocator, allocator, records, &plan.blocks, type_bits, &weights.blocks, error):
        return error.status
    if import_weights(weights, error):
        return error.status
    for i in range(plan.weights.first, plan.weights.first + plan.weights.count):
        # Those that are mapped, or somebody else's, are there.
        if (not has_handle(handles, records.integer[i])
                and make_handle(handles, records.integer[i], error)):
            return error.status
    for i in range(plan.streamed.first, plan.streamed.first + plan.streamed.count):
        if allow_uploads(handles, records.streamed_weight[i].read.storage, error):
            return error.status
    return VKRT_OK


cdef int import_weights(Weights* weights, Error* error) noexcept nogil:
    """Imports the windows of the file that the mapped weights lie in, and places the weights."""
    cdef const WeightReadRow* mapped = weights.records.weight_read + weights.plan.mapped.first
    cdef int64_t number = weights.plan.mapped.count, first = 0, last, start, end
    if number == 0 or has_handle(weights.handles, mapped.storage):
        return VKRT_OK
    weights.imports = <HostImport*>calloc(<size_t>number, sizeof(HostImport))
    if weights.imports == NULL:
        return fail(error, VKRT_ERROR_MEMORY, b"imports of weights: the host is out of memory")
    while first < number:
        start, end, last = INT64_MAX, INT64_MIN, first
        while last < number and extend_window(
                weights.handles.device, weights.file, mapped[last].offset,
                mapped[last].nbytes + mapped[last].tail, &start, &end):
            last += 1
        if import_window(weights, mapped + first, last - first, start, end, error):
            return error.status
        first = last
    return VKRT_OK


cdef int import_window(Weights* weights, const WeightReadRow* mapped, int64_t number,
                       int64_t start, int64_t end, Error* error) noexcept nogil:
    cdef HostImport* window = &weights.imports[weights.import_count]
    cdef int64_t i
    if import_host(weights.handles.device, <void*>(weights.file.data + start),
                   <uint64_t>(end - start), BUFFER_USAGE, window, error):
        return error.status
    weights.import_count += 1
    for i in range(number):
        place_handle(weights.handles, mapped[i].storage, &window.buffer,
                     <uint64_t>(mapped[i].offset - start))
    return VKRT_OK


cdef int allocate(void* data, int64_t number, Error* error) noexcept nogil:
    """An `AllocateBlock` of a `Weights`."""
    cdef Weights* weights = <Weights*>data
    return allocate_planned(&weights.blocks, weights.handles, number, error)


cdef int allocate_weights(Weights* weights, Error* error) noexcept nogil:
    cdef int64_t i
    for i in range(weights.plan.blocks.count):
        if allocate(weights, i, error):
            return error.status
    return VKRT_OK


cdef int allocate_written(Weights* weights, Error* error) noexcept nogil:
    """The blocks of weights that the host writes."""
    cdef const BlockRow* block = weights.records.block + weights.plan.blocks.first
    cdef int64_t i
    for i in range(weights.plan.blocks.count):
        if has_written(weights.records, weights.plan, block + i) and allocate(weights, i, error):
            return error.status
    return VKRT_OK


cdef int run_writes(Loading* loading, const Job* jobs, int64_t count, uint64_t at_once,
                    Error* error) noexcept nogil:
    """Reads so many bytes or a few more at a time."""
    cdef uint64_t nbytes = 0
    cdef int64_t first = 0, i
    for i in range(count):
        nbytes += jobs[i].nbytes
        if nbytes < at_once and i + 1 < count:
            continue
        if (read_jobs(loading, jobs + first, <size_t>(i + 1 - first), error)
                or count_bytes(loading, nbytes, error)):
            return error.status
        first, nbytes = i + 1, 0
    return VKRT_OK


cdef int write_all(Weights* weights, StridedCopy* copies, Job* jobs, Loading* loading,
                   uint64_t at_once, Error* error) noexcept nogil:
    cdef const WeightReadRow* written = weights.records.weight_read + weights.plan.written.first
    cdef int64_t count = weights.plan.written.count, i
    cdef const StridedCopy* copy
    cdef Buffer* buffer
    for i in range(count):
        buffer = weights.handles.items[written[i].storage].buffer
        if (copy_of_weight(weights.records, &written[i], &copies[i], &copy, error)
                or make_weight_job(weights.records, &written[i], buffer, copy, &jobs[i], error)):
            return error.status
    if run_writes(loading, jobs, count, at_once, error):
        return error.status
    # Nothing else has written their blocks yet, so that neighbours in an atom come to no harm.
    for i in range(count):
        buffer = weights.handles.items[written[i].storage].buffer
        if flush_block(buffer.memory.block, buffer.memory.offset, buffer.size, error):
            return error.status
    return VKRT_OK


cdef int write_weights(Weights* weights, Loading* loading, uint64_t at_once,
                       Error* error) noexcept nogil:
    cdef size_t room = <size_t>weights.plan.written.count + 1
    cdef StridedCopy* copies
    cdef Job* jobs
    cdef int status
    if allocate_written(weights, error):
        return error.status
    copies = <StridedCopy*>calloc(room, sizeof(StridedCopy))
    jobs = <Job*>calloc(room, sizeof(Job))
    status = (write_all(weights, copies, jobs, loading, at_once, error)
              if copies != NULL and jobs != NULL
              else fail(error, VKRT_ERROR_MEMORY, b"reading weights: the host is out of memory"))
    free(copies)
    free(jobs)
    return status


cdef int pack_weights(Weights* weights, const Records* records, const PrepackPlanRow* plan,
                      const Kernel* kernels, Loading* loading, Error* error) noexcept nogil:
    return run_prepack(records, plan, weights.handles, weights.allocator, kernels, loading,
                       allocate, weights, error)


cdef void close_weights(Weights* weights) noexcept nogil:
    cdef int64_t i
    for i in range(weights.import_count):
        end_import(&weights.imports[i])
    free(weights.imports)
    free_blocks(&weights.blocks)
    memset(weights, 0, sizeof(weights[0]))
