from libc.string cimport memset

from vkrt.core.error cimport VKRT_ERROR_FORMAT, VKRT_OK, fail
from vkrt.core.pieces cimport make_job
from vkrt.core.records cimport StridedCopyRow
from vkrt.core.strided_copy cimport make_strided_copy


cdef Job plain_job(const Records* records, int64_t source, int64_t offset, int64_t nbytes,
                   const Text* name, char* target) noexcept nogil:
    cdef Job job
    memset(&job, 0, sizeof(job))
    job.source, job.offset, job.nbytes = <size_t>source, <size_t>offset, <size_t>nbytes
    job.target = target
    job.name, job.name_bytes = records.texts + name.first, <size_t>name.count
    return job


cdef int copy_of_weight(const Records* records, const WeightReadRow* read, StridedCopy* room,
                        const StridedCopy** copy, Error* error) noexcept nogil:
    cdef const StridedCopyRow* row = &read.copy.value
    copy[0] = NULL
    if not read.copy.is_there:
        return VKRT_OK
    copy[0] = room
    return make_strided_copy(records.integer + row.params.first, <size_t>row.params.count,
                             row.itemsize, row.rows, room, error)


cdef int make_weight_job(const Records* records, const WeightReadRow* read, const Buffer* buffer,
                         const StridedCopy* copy, Job* job, Error* error) noexcept nogil:
    cdef Job plain
    if buffer.memory.block == NULL or buffer.memory.block.mapped == NULL:
        return fail(error, VKRT_ERROR_FORMAT, b"storage %lld is a weight that the host writes, and "
                    b"lies in memory that it does not see", <long long>read.storage)
    plain = plain_job(records, read.source, read.offset, read.nbytes, &read.name,
                      <char*>buffer.memory.block.mapped + buffer.memory.offset)
    return make_job(&plain, <size_t>buffer.size, copy, 0, read.copy.value.rows, job, error)
