from libc.errno cimport errno

from vkrt.core.error cimport VKRT_ERROR_CANCELLED, VKRT_OK, fail
from vkrt.core.reader cimport run_jobs


cdef int read_jobs(Loading* loading, const Job* jobs, size_t count, Error* error) noexcept nogil:
    cdef int status = run_jobs(loading.reader, jobs, count, loading.poll, loading.data,
                               &loading.failed, error)
    loading.number = errno
    return status


cdef int count_bytes(Loading* loading, uint64_t nbytes, Error* error) noexcept nogil:
    loading.done += nbytes
    if loading.progress != NULL and loading.progress(loading.data, loading.done):
        return fail(error, VKRT_ERROR_CANCELLED, b"the load was ended by its host")
    return VKRT_OK
