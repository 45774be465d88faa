from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport calloc, free

from vkrt.core.check cimport product_of
from vkrt.core.error cimport VKRT_ERROR_INTERNAL, VKRT_ERROR_MEMORY, fail
from vkrt.core.handles cimport host_address
from vkrt.core.pieces cimport Job
from vkrt.core.reader cimport run_jobs
from vkrt.core.records cimport HostArrayRow, RowTableRow
from vkrt.core.weight_jobs cimport plain_job


cdef bint has_row_reads(const Records* records, const ExecutionPlanRow* plan) noexcept nogil:
    cdef int64_t i
    for i in range(plan.submissions.first, plan.submissions.first + plan.submissions.count):
        if (records.submission_record[i].host.is_there
                and records.submission_record[i].host.value.table.is_there):
            return True
    return False


cdef int64_t row_of(int64_t index, int64_t rows) noexcept nogil:
    """The row that an index names, as kernels that gather rows have it (`vkrt.ops.indexing`)."""
    if index < 0:
        index += rows
    return min(max(index, 0), rows - 1)


cdef int read_rows(Reader* reader, const Handles* handles, const HostKernelRow* kernel,
                   Poll poll, void* data, Error* error) noexcept nogil:
    cdef const RowTableRow* table = &kernel.table.value
    cdef const HostArrayRow* indices = handles.records.host_array + kernel.reads.first
    cdef const HostArrayRow* rows = handles.records.host_array + kernel.writes.first
    cdef int64_t count = product_of(handles.records, &indices.sizes), i
    cdef const int32_t* index = <const int32_t*>host_address(handles, &indices.range)
    cdef char* target = host_address(handles, &rows.range)
    cdef Job* jobs
    cdef Job failed
    cdef int status
    if reader == NULL:
        return fail(error, VKRT_ERROR_INTERNAL, b"rows of a table are to be read without a reader")
    jobs = <Job*>calloc(<size_t>count + 1, sizeof(Job))
    if jobs == NULL:
        return fail(error, VKRT_ERROR_MEMORY, b"reading %lld rows: the host is out of memory",
                    <long long>count)
    for i in range(count):
        jobs[i] = plain_job(handles.records, table.source,
                            table.offset + row_of(index[i], table.rows) * table.row_bytes,
                            table.row_bytes, &table.name, target + i * table.row_bytes)
    status = run_jobs(reader, jobs, <size_t>count, poll, data, &failed, error)
    free(jobs)
    return status
