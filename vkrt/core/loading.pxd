"""What a load reads weights with, and whom it tells of them."""

from libc.stdint cimport uint64_t
from libc.string cimport memset

from vkrt.core.error cimport Error
from vkrt.core.pieces cimport Job
from vkrt.core.poll cimport Poll
from vkrt.core.reader cimport Reader

# Hears how many bytes have been read so far; any value but 0 ends the load.
ctypedef int (*Progress)(void* data, uint64_t done) noexcept nogil

cdef struct Loading:
    Reader* reader
    # Either may be NULL
    Poll poll
    Progress progress
    # Of both
    void* data
    # Bytes that the weights have taken from their files
    uint64_t done
    # The job that an error of reading is about, and the number of the system's error
    Job failed
    int number

# What reads by a reader and tells nobody
cdef inline Loading loading_by(Reader* reader) noexcept nogil:
    cdef Loading loading
    memset(&loading, 0, sizeof(loading))
    loading.reader = reader
    return loading

cdef extern nogil:
    int read_jobs "vkrt_read_jobs"(Loading* loading, const Job* jobs, size_t count, Error* error)
    # So many bytes more are where they belong.
    int count_bytes "vkrt_count_bytes"(Loading* loading, uint64_t nbytes, Error* error)
